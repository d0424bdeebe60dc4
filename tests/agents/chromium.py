"""A real browser for tests of pages, and text that would harm a page that believed it."""

from __future__ import annotations

import os
import shutil

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium; set CHROMIUM=PATH"),
]
HOSTILE = "<script>window.hacked=1</script><img src=x onerror='window.hacked=1'>\x1b[2J\u202egnp"
