import json
import subprocess
import sys

ALLOWED = {"rllm_envs", "gymnasium", "numpy", "cloudpickle", "farama_notifications"}
HEAVY = {"torch", "transformers", "datasets", "pandas", "sympy", "math_verify", "pettingzoo",
         "scipy", "matplotlib", "ray", "vllm", "asyncio"}  # fmt: skip

CODE = """
import json, sys, time
import gymnasium
before = set(sys.modules)
start = time.process_time()
import rllm_envs
seconds = time.process_time() - start
print(json.dumps([seconds, sorted(set(sys.modules) - before)]))
"""


def test_the_import_is_quick_and_loads_nothing_heavy():
    runs = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", CODE], capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        runs.append(json.loads(done.stdout))
    assert min(seconds for seconds, _ in runs) < 0.15
    roots = {name.partition(".")[0] for name in runs[0][1]}
    assert not roots & HEAVY
    outside = {root for root in roots if root not in sys.stdlib_module_names} - ALLOWED
    assert not outside


def test_the_public_names_are_all_there():
    import rllm_envs

    assert sorted(rllm_envs.__all__) == rllm_envs.__all__ or len(set(rllm_envs.__all__)) == len(
        rllm_envs.__all__
    )
    for name in rllm_envs.__all__:
        assert getattr(rllm_envs, name) is not None
