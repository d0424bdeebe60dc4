"""Where the figures of these scripts go: one small JSON file each, with what they were taken on."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "results" / "performance"


def write_result(name: str, settings: Mapping[str, Any], figures: Mapping[str, Any]) -> Path:
    """Write a result file and return its place.

    Args:
        name: Of the script.
        settings: What was measured, and how much of it.
        figures: What came out.
    """
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    content = {
        "name": name,
        "command": " ".join([f"python benchmarks/performance/{name}.py", *sys.argv[1:]]),
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}",
        "load_average": round(os.getloadavg()[0], 1),
        "settings": settings,
        "figures": figures,
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path
