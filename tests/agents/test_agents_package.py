from __future__ import annotations

import subprocess
import sys

import rllm_agents


def test_every_public_name_can_be_imported() -> None:
    for name in rllm_agents.__all__:
        assert getattr(rllm_agents, name) is not None


def test_importing_the_package_loads_neither_torch_nor_transformers() -> None:
    code = (
        "import sys, rllm_agents; "
        "print([m for m in ('torch', 'transformers', 'vllm', 'ray') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
