"""The viewer over HTTP: what it serves, to whom, under which headers."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from test_viewer_selection import episode, write

from rllm_agents.errors import UserError
from rllm_agents.viewer import Viewer

SOURCES = "packages/rllm-agents/viewer"
ASSETS = "packages/rllm-agents/src/rllm_agents/viewer/assets"


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    write(tmp_path / "episodes.jsonl", *(episode(n) for n in range(300)))
    rows = [{"step": n, "train/reward": n / 10} for n in range(5)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    (tmp_path / "summary.json").write_text('{"settings": {"seed": 9}, "pass_at_1": 0.5}')
    return tmp_path


def visit(run: Path, talk: Callable[[Viewer, aiohttp.ClientSession], Awaitable[Any]]) -> Any:
    """Run a viewer, and what is asked of it once all episodes are read."""

    async def whole() -> Any:
        async with Viewer(run) as viewer, aiohttp.ClientSession(viewer.url) as client:
            while not (await get(client, "run"))["is_complete"]:
                await asyncio.sleep(0.01)
            return await talk(viewer, client)

    return asyncio.run(asyncio.wait_for(whole(), 30))


async def get(client: aiohttp.ClientSession, path: str, **parameters: Any) -> Any:
    async with client.get(f"api/{path}", params=parameters) as answer:
        assert answer.status == 200, await answer.text()
        return json.loads(await answer.text(), parse_constant=pytest.fail)


def test_a_run_its_metrics_and_its_episodes(run_dir: Path) -> None:
    async def talk(_: Viewer, client: aiohttp.ClientSession) -> None:
        run = await get(client, "run")
        assert (run["num_episodes"], run["num_tasks"]) == (300, 150)
        assert (run["kinds"], run["terminations"]) == (["episodes"], ["env_done"])
        assert run["summary"]["pass_at_1"] == 0.5
        assert json.loads(run["settings"]) == {"seed": 9}
        metrics = await get(client, "metrics", after=3)
        assert metrics["total"] == 5
        assert [row["train/reward"] for row in metrics["rows"]] == [0.3, 0.4]
        page = await get(client, "episodes", outcome="solved", first=100, count=2)
        assert (page["matching"], page["total"], page["scanned"]) == (200, 300, 300)
        assert [row["number"] for row in page["rows"]] == [151, 152]
        assert page["rows"][0]["asked"] == "Say 151"
        assert len((await get(client, "episodes", count=1000))["rows"]) <= 500
        one = await get(client, "episodes/151")
        assert one["trajectories"][0]["messages"][0]["content"] == "Say 151"
        assert one["reward"] == 1.0

    visit(run_dir, talk)


def test_a_search_comes_to_its_end_over_several_requests(run_dir: Path) -> None:
    async def talk(_: Viewer, client: aiohttp.ClientSession) -> None:
        scanned = 0
        while scanned < 300:
            page = await get(client, "episodes", text="Say 29")
            assert page["scanned"] > scanned
            scanned = page["scanned"]
        assert [row["number"] for row in page["rows"]] == [29, *range(290, 300)]

    visit(run_dir, talk)


def test_a_growing_run_is_followed_and_one_written_anew_begins_anew(run_dir: Path) -> None:
    async def until(client: aiohttp.ClientSession, num_episodes: int) -> dict[str, Any]:
        while (run := await get(client, "run"))["num_episodes"] != num_episodes:
            await asyncio.sleep(0.05)
        return run

    async def talk(_: Viewer, client: aiohttp.ClientSession) -> None:
        write(run_dir / "episodes.jsonl", episode(300))
        assert (await until(client, 301))["generation"] == 0
        write(run_dir / "other", episode(0), episode(1))
        (run_dir / "other").replace(run_dir / "episodes.jsonl")
        assert (await until(client, 2))["generation"] == 1
        assert (await get(client, "episodes"))["generation"] == 1

    visit(run_dir, talk)


def test_every_answer_has_strict_headers(run_dir: Path) -> None:
    async def talk(_: Viewer, client: aiohttp.ClientSession) -> None:
        for path in ("", "app.js", "app.css", "api/run", "api/episodes/9999", "none", "../x"):
            async with client.get(path) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
                assert "Access-Control-Allow-Origin" not in answer.headers

    visit(run_dir, talk)


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("api/episodes/300", 404, "no episode 300"),
        ("api/episodes/x", 404, ""),
        ("api/episodes?order=size", 400, "order must be one of"),
        ("api/episodes?first=-1", 400, "first must be a whole number"),
        ("api/metrics?after=x", 400, "after must be"),
        ("assets/app.js", 404, ""),
    ],
)
def test_what_does_not_exist_is_refused(run_dir: Path, path: str, status: int, words: str) -> None:
    async def talk(_: Viewer, client: aiohttp.ClientSession) -> None:
        async with client.get(path) as answer:
            assert answer.status == status
            assert answer.content_type == "text/plain"
            assert words in await answer.text()

    visit(run_dir, talk)


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1.example.org", "10.0.0.1:80", ""])
def test_pages_of_other_names_get_no_answer(run_dir: Path, host: str) -> None:
    async def talk(_: Viewer, client: aiohttp.ClientSession) -> None:
        async with client.get("api/run", headers={"Host": host}) as answer:
            assert answer.status in (400, 421)
            assert run_dir.name not in await answer.text()

    visit(run_dir, talk)


def test_nothing_can_be_changed_and_only_loopback_listens(run_dir: Path) -> None:
    async def talk(viewer: Viewer, client: aiohttp.ClientSession) -> None:
        assert viewer.url.startswith("http://127.0.0.1:")
        for method in ("POST", "PUT", "DELETE"):
            async with client.request(method, "api/run") as answer:
                assert answer.status == 405

    visit(run_dir, talk)


def test_a_port_that_is_taken_is_said_in_one_line(run_dir: Path) -> None:
    async def talk(viewer: Viewer, _: aiohttp.ClientSession) -> None:
        port = int(viewer.url.rstrip("/").rpartition(":")[2])
        with pytest.raises(UserError, match=f"port {port} cannot be listened on"):
            async with Viewer(run_dir, port=port):
                pass

    visit(run_dir, talk)


def test_hostile_text_leaves_as_json_and_nothing_else(tmp_path: Path) -> None:
    text = "</script><script>alert(1)</script>\x1b[2J\u202e\ud800"
    hostile = episode(0, id=text, task=text, termination_reason=text, error=text)
    (tmp_path / "episodes.jsonl").write_text(json.dumps(hostile) + "\n")

    async def talk(_: Viewer, client: aiohttp.ClientSession) -> None:
        for path in ("api/run", "api/episodes", "api/episodes/0"):
            async with client.get(path) as answer:
                assert answer.content_type == "application/json"
                assert json.loads(await answer.text())
        assert (await get(client, "episodes/0"))["error"] == text

    visit(tmp_path, talk)


def test_the_assets_are_small_and_made_of_the_sources_beside_them(repository: Path) -> None:
    sources = repository / SOURCES
    paths = [sources / "package.json", *(sources / "src").rglob("*")]
    names = sorted(p.relative_to(sources).as_posix() for p in paths if p.is_file())
    digest = hashlib.sha256(b"".join((sources / name).read_bytes() for name in names)).hexdigest()
    script = (repository / ASSETS / "app.js").read_text("utf-8")
    assert digest in script[:200], "run scripts/build_viewer.sh"
    files = list((repository / ASSETS).iterdir())
    assert sum(path.stat().st_size for path in files) < 200_000
    page = (repository / ASSETS / "index.html").read_text("utf-8")
    assert page.count("<script") == 1  # the policy forbids scripts in the page
    assert "dangerouslySetInnerHTML" not in "".join(
        path.read_text("utf-8") for path in (sources / "src").rglob("*.js*")
    )
