from __future__ import annotations

import json
import math

import pytest
from click.testing import CliRunner

from rllm_agents import Renderer
from rllm_agents.models import TINY
from rllm_learn.cli.dpo import dpo
from rllm_learn.config import DPOFileConfig
from rllm_learn.errors import ConfigError
from rllm_learn.preference_tuning import read_pairs
from rllm_learn.settings import load_tokenizer
from rllm_learn.tracking import read_metrics

TEXTS = {"prompt": "What is 2 + 2?", "chosen": "\\boxed{4}", "rejected": "\\boxed{5}"}
ANSWER = {"role": "assistant", "content": "\\boxed{4}"}


def episode(task, reward, answer):
    messages = [
        {"role": "user", "content": f"What is {task} + 2?"},
        {"role": "assistant", "content": answer},
    ]
    return {"task": {"seed": task}, "reward": reward, "messages": messages}


def pairs_of(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    tokenizer = load_tokenizer(TINY)
    pairs = read_pairs(path, Renderer(tokenizer), DPOFileConfig(data=str(path)))

    def said(rollout):
        (sequence,) = rollout.sequences
        marked = zip(sequence.token_ids, sequence.action_mask, strict=True)
        return tokenizer.decode([i for i, is_marked in marked if is_marked])

    return [(said(chosen), said(rejected)) for chosen, rejected in pairs]


def test_a_row_is_a_pair_of_texts_or_of_messages(tmp_path):
    lists = {
        "prompt": [{"role": "user", "content": "x"}, ANSWER, {"role": "user", "content": "y"}],
        "chosen": [ANSWER],
        "rejected": [{"role": "assistant", "content": "no"}],
    }
    # What the assistant says in the prompt is in neither.
    assert pairs_of(tmp_path / "p.jsonl", TEXTS, lists) == [
        ("\\boxed{4}<|im_end|>", "\\boxed{5}<|im_end|>"),
        ("\\boxed{4}<|im_end|>", "no<|im_end|>"),
    ]


def test_episodes_of_one_task_are_paired_by_their_rewards(tmp_path):
    rows = [
        episode(1, 0.0, "a"),
        episode(2, 1.0, "b"),
        episode(1, 1.0, "c"),
        episode(2, 1.0, "d"),
        episode(1, None, "failed"),
        episode(1, 0.5, "e"),
    ]
    assert pairs_of(tmp_path / "e.jsonl", *rows) == [("c<|im_end|>", "a<|im_end|>")]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"text": "x"}, "`task`, `messages` and `reward`"),
        ({**TEXTS, "rejected": TEXTS["chosen"]}, "are equal"),
        ({**TEXTS, "rejected": 5}, "`rejected` must be a list"),
        ({**TEXTS, "prompt": []}, "`prompt` must be a list"),
        ({**TEXTS, "chosen": [{"role": "user", "content": "x"}]}, "no assistant message"),
        (episode(1, "good", "a"), "`reward` must be a number"),
        ({**TEXTS, "chosen": "1 " * 3000}, "more than max_length=1024"),
    ],
)
def test_a_row_that_cannot_be_learned_from_is_named(tmp_path, row, words):
    with pytest.raises(ConfigError, match="row 2: ") as caught:
        pairs_of(tmp_path / "p.jsonl", TEXTS, row)
    assert words in str(caught.value)


def test_episodes_that_all_came_out_alike_are_no_pairs(tmp_path):
    with pytest.raises(ConfigError, match=r"no pair.*samples_per_task=8"):
        pairs_of(tmp_path / "e.jsonl", episode(1, 1.0, "a"), episode(2, 0.0, "b"))


def test_the_command_learns_the_preferences_and_writes_a_model(tmp_path):
    data, path = tmp_path / "p.jsonl", tmp_path / "run"
    questions = [f"What is {a} + {a + 37}?" for a in range(100, 140)]
    rows = [{"prompt": q, "chosen": "\\boxed{4}", "rejected": "\\boxed{5}"} for q in questions]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = CliRunner().invoke(
        dpo,
        [
            f"data={data}",
            "num_updates=25",
            "batch_pairs=8",
            "beta=0.5",
            "tracking.to=[]",
            f"run_dir={path}",
        ],
        catch_exceptions=False,
    )
    assert result.exit_code == 0, result.output
    rows = read_metrics(path / "metrics.jsonl")
    # The policy starts as the reference: no margin, log 2.
    assert rows[0]["dpo/preference_loss"] == pytest.approx(math.log(2), abs=1e-5)
    assert rows[0]["dpo/margin"] == pytest.approx(0.0, abs=1e-5)
    assert rows[-1]["dpo/preference_loss"] < 0.1
    assert rows[-1]["dpo/preferred"] == 1.0
    assert (path / "model" / "config.json").exists()
    assert (path / "adapter" / "adapter_config.json").exists()
    summary = json.loads((path / "summary.json").read_text())
    assert summary["final_preference_loss"] == rows[-1]["dpo/preference_loss"]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("beta=0", "beta must be above 0"),
        ("learner.num_epochs=2", "a pair's pull holds for the weights that scored it"),
        ("num_updates=0", "num_updates must be >= 1"),
    ],
)
def test_settings_that_cannot_work_are_refused(setting, words):
    with pytest.raises(ConfigError, match=words):
        CliRunner().invoke(dpo, ["data=x.jsonl", setting], catch_exceptions=False)


def test_without_data_it_says_what_is_missing():
    with pytest.raises(ConfigError, match="data is not set"):
        CliRunner().invoke(dpo, [], catch_exceptions=False)
