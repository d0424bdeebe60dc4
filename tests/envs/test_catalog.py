import json
import subprocess
import sys
from importlib.util import find_spec

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from rllm_envs import CATALOG, check_text_env
from rllm_envs.catalog import register_catalog

# The extras that an environment needs are named after their library.
IDS = [e.id for e in CATALOG if not e.extra or find_spec(e.extra.replace("-", "_"))]


def test_the_catalog_holds_the_published_ids():
    assert {"rllm/Arithmetic-v0", "rllm/Math-v0", "rllm/Calculator-v0"} <= set(IDS)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("env_id", IDS)
def test_each_env_passes_gymnasiums_check_with_warnings_as_errors(env_id):
    check_env(gymnasium.make(env_id).unwrapped)


@pytest.mark.parametrize("env_id", IDS)
def test_each_env_keeps_the_contract(env_id):
    check_text_env(gymnasium.make(env_id))


@pytest.mark.parametrize("env_id", IDS)
def test_each_env_can_be_rebuilt_from_the_json_of_its_spec(env_id):
    env = gymnasium.make(env_id, split="test")
    assert env.spec is not None
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.reset(seed=7)[0] == env.reset(seed=7)[0]
    assert again.unwrapped.split == "test"


@pytest.mark.parametrize("env_id", IDS)
def test_each_docstring_has_the_sections_of_a_gymnasium_page(env_id):
    doc = type(gymnasium.make(env_id).unwrapped).__doc__
    for section in ("Description", "Action Space", "Observation Space", "Rewards", "Arguments",
                    "Starting State", "Episode End", "Information", "Version History"):  # fmt: skip
        assert f"## {section}\n" in doc


@pytest.mark.parametrize("env_id", ["rllm/Arithmetic-v0", "rllm/Calculator-v0", "rllm/Math-v0"])
def test_first_observations_fit_the_tiny_model(env_id):
    env = gymnasium.make(env_id)
    assert max(len(env.reset(seed=seed)[0]) for seed in range(50)) <= 140


@pytest.mark.parametrize(
    ("mode", "env_id"),
    # A process for each environment takes its time, so a few stand for all.
    [("sync", i) for i in IDS] + [(m, i) for m in ("async", "async-pipes") for i in IDS[::12]],
)
def test_vector_envs_give_the_strings_of_the_single_envs(env_id, mode):
    kind, _, pipes = mode.partition("-")
    vector_kwargs = {"shared_memory": not pipes} if kind == "async" else {}
    seeds = [3, 4, 5]
    singles = [gymnasium.make(env_id) for _ in seeds]
    firsts = [env.reset(seed=seed)[0] for env, seed in zip(singles, seeds, strict=True)]
    actions = [env.unwrapped.oracle_action() for env in singles]
    seconds = [env.step(action)[:2] for env, action in zip(singles, actions, strict=True)]
    envs = gymnasium.make_vec(
        env_id, num_envs=3, vectorization_mode=kind, vector_kwargs=vector_kwargs
    )
    try:
        observations, _ = envs.reset(seed=seeds)
        assert tuple(observations) == tuple(firsts)
        observations, rewards, *_ = envs.step(tuple(actions))
        assert tuple(observations) == tuple(text for text, _ in seconds)
        assert list(rewards) == [reward for _, reward in seconds]
    finally:
        envs.close()


def test_registering_twice_changes_nothing(recwarn):
    before = {env_id: gymnasium.spec(env_id) for env_id in IDS}
    register_catalog()
    assert {env_id: gymnasium.spec(env_id) for env_id in IDS} == before
    assert not recwarn.list


def test_both_forms_of_make_work_in_a_fresh_process():
    code = (
        "import gymnasium, json\n"
        f"forms = [f'rllm_envs:{{i}}' for i in {IDS!r}] + {IDS!r}\n"
        "firsts = [gymnasium.make(form).reset(seed=1)[0] for form in forms]\n"
        "print(json.dumps(firsts))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = [gymnasium.make(env_id).reset(seed=1)[0] for env_id in IDS]
    assert json.loads(done.stdout.splitlines()[-1]) == expected * 2
