"""Generated file trees: logs, tables, settings and notes."""

from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.shell.files import Path, Tree, text_of, walk

SERVICES = ("auth", "billing", "cache", "mail", "orders", "search", "stock", "video")
LEVELS = ("INFO", "DEBUG", "WARNING", "ERROR", "FATAL")
EVENTS = ("timeout", "retry", "connected", "disk full", "restart", "cache miss", "denied")
KEYS = ("port", "workers", "retry_limit", "timeout", "max_items", "log_level", "region")
COLUMNS = ("name", "department", "city", "salary")
DEPARTMENTS = ("sales", "research", "support", "finance", "design")
CITIES = ("Oslo", "Lyon", "Porto", "Ghent", "Turin", "Leeds", "Graz")
TABLES = ("staff", "alumni", "contractors", "interns", "trainers")
TOPICS = ("garden", "travel", "recipes", "books", "music", "budget", "ideas", "meeting")
WORDS = (
    *("apple", "bridge", "candle", "desert", "engine", "forest", "guitar", "harbour", "island"),
    *("jacket", "kettle", "ladder", "market", "needle", "orange", "pencil", "quarry", "river"),
    *("silver", "table", "umbrella", "valley", "window", "yellow"),
)
_FIRST = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hal", "Ines", "Jon", "Kim", "Lou")
_LAST = ("Abel", "Boll", "Cruz", "Dahl", "Ek", "Fuchs", "Gray", "Holm", "Ito", "Juhl")


def random_tree(draws: Draws) -> Tree:
    """Return a tree of about 30 files in /logs, /data, /config and /notes."""
    services = draws.sample(SERVICES, draws.between(3, 5))
    notes: Tree = {}
    for topic in draws.sample(TOPICS, draws.between(4, 6)):
        place = notes
        if draws.random() < 0.5:
            place = notes.setdefault(draws.pick(("old", "drafts", "shared")), {})
        place[f"{topic}.{draws.pick(('txt', 'md', 'tmp'))}"] = _note(draws)
    config: Tree = {}
    for service in services:
        place = config.setdefault(draws.pick(("live", "test")), {})
        place[f"{service}.conf"] = text_of([f"{key}={draws.between(1, 9999)}" for key in KEYS])
    return {
        "config": config,
        "data": {
            f"{name}.csv": _table(draws) for name in draws.sample(TABLES, draws.between(2, 4))
        },
        "logs": {service: _logs(draws, service) for service in services},
        "notes": notes,
    }


def _note(draws: Draws) -> str:
    lines = [
        " ".join(draws.pick(WORDS) for _ in range(draws.between(3, 8)))
        for _ in range(draws.between(3, 12))
    ]
    lines.insert(draws.between(0, len(lines)), f"ticket {draws.between(10_000, 99_999)}")
    return text_of(lines)


def _table(draws: Draws) -> str:
    names = draws.sample([f"{first} {last}" for first in _FIRST for last in _LAST], 30)
    rows = [
        f"{names[i]},{draws.pick(DEPARTMENTS)},{draws.pick(CITIES)},{draws.between(2000, 9000)}"
        for i in range(draws.between(12, 30))
    ]
    return text_of([",".join(COLUMNS), *rows])


def _logs(draws: Draws, service: str) -> Tree:
    days = sorted(draws.sample(range(1, 29), draws.between(2, 5)))
    logs: Tree = {}
    for day in days:
        lines = [
            f"2024-05-{day:02d} {hour:02d}:{draws.between(0, 59):02d} {draws.pick(LEVELS)} "
            f"{service}: {draws.pick(EVENTS)}"
            for hour in sorted(draws.below(24) for _ in range(draws.between(5, 20)))
        ]
        logs[f"{service}-{day:02d}.{draws.pick(('log', 'log', 'log', 'txt'))}"] = text_of(lines)
    return logs


def files_below(tree: Tree, prefix: Path = ()) -> dict[str, str]:
    """Return full path and content of the files below a directory of the tree, or {}."""
    return {
        "/" + "/".join(path): node
        for path, node in walk(tree)
        if isinstance(node, str) and path[: len(prefix)] == prefix and len(path) > len(prefix)
    }
