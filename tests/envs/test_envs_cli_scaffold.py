import subprocess
import sys

import pytest

from rllm_envs.cli import main


def run_in(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=folder, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("options", "name", "class_name", "env_id"),
    [
        ([], "spell_back", "SpellBackEnv", "my/SpellBack-v0"),
        (["--multi-turn"], "find_it", "FindItEnv", "my/FindIt-v0"),
    ],
)
def test_the_written_env_passes_check_and_the_written_test_passes(
    tmp_path, options, name, class_name, env_id
):
    written = run_in(tmp_path, "rllm_envs", "new", name, *options)
    assert (written.returncode, written.stderr) == (0, "")
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.py", f"test_{name}.py"}
    assert f"python -m rllm_envs check {name}.py:{env_id}\n" in written.stdout
    assert f"python -m pytest test_{name}.py\n" in written.stdout

    for target in (f"{name}.py:{env_id}", f"{name}:{class_name}"):
        checked = run_in(tmp_path, "rllm_envs", "check", target)
        assert checked.returncode == 0, checked.stdout + checked.stderr
    tested = run_in(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", f"test_{name}.py")
    assert tested.returncode == 0, tested.stdout
    assert " passed" in tested.stdout
    shown = run_in(tmp_path, "rllm_envs", "show", f"{name}:{env_id}")
    assert "[end, reward 1]" in shown.stdout


def test_a_folder_can_be_named_and_the_env_is_checked_from_elsewhere(tmp_path):
    folder = tmp_path / "envs"
    folder.mkdir()
    done = run_in(tmp_path, "rllm_envs", "new", "deep_env", "--directory", "envs")
    assert "python -m rllm_envs check envs/deep_env.py:my/Deep-v0\n" in done.stdout
    assert "class DeepEnv(SingleTurnEnv)" in (folder / "deep_env.py").read_text()
    assert run_in(tmp_path, "rllm_envs", "check", "envs/deep_env.py:my/Deep-v0").returncode == 0
    assert run_in(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", "envs").returncode == 0


@pytest.mark.parametrize("existing", ["taken.py", "test_taken.py"])
def test_nothing_is_overwritten_and_then_nothing_is_written(tmp_path, capsys, existing):
    (tmp_path / existing).write_text("mine")
    assert main(["new", "taken", "--directory", str(tmp_path)]) == 2
    assert f"{existing} exists and is not overwritten" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [existing]
    assert (tmp_path / existing).read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("WordCount", "NAME must be that of a module"),
        ("word count", "NAME must be that of a module"),
        ("../escape", "NAME must be that of a module"),
        ("class", "NAME must be that of a module"),
        ("test_me", "NAME must be that of a module"),
        ("a" * 41, "NAME must be that of a module"),
        ("", "NAME must be that of a module"),
        ("json", "'json' is the name of another module"),
        ("numpy", "'numpy' is the name of another module"),
    ],
)
def test_a_name_that_cannot_be_a_module_is_refused(tmp_path, capsys, name, message):
    assert main(["new", name, "--directory", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_refused(tmp_path, capsys):
    assert main(["new", "fine_name", "--directory", str(tmp_path / "no")]) == 2
    assert "is no directory; make it first" in capsys.readouterr().err
