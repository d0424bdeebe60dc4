"""The vLLM engine with other kinds of weights: half precision, biases, untied heads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch
from tiny_models import largest_error, plain_logprobs
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2ForCausalLM
from vllm_models import perturb, play, publish, requests_of

pytest.importorskip("vllm", reason="vLLM is not installed")

from rllm_agents.models import TINY
from rllm_agents.rollout_engines.vllm import VLLMEngine

BFLOAT16_MEAN, BFLOAT16_LARGEST = 0.05, 2.0
"""Differences in logprob that half precision explains for the tiny model's sharp logits: there, a
logit of 64 has neighbours at a distance of 0.5."""


def test_half_precision_stays_near_the_trainers_forward_pass_also_after_a_push() -> None:
    model = AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.bfloat16).eval()
    engine = VLLMEngine("tiny", dtype="bfloat16", max_batch_size=16, max_model_length=256)
    try:
        requests = requests_of(16)
        for version, part in enumerate(("nothing", "")):
            if version:
                publish(engine, perturb(model, part), version)
            answers = play(engine, requests)
            gaps = torch.cat(
                [
                    plain_logprobs(model, r.prompt_ids or (), a.token_ids)
                    - torch.tensor(a.logprobs)
                    for r, a in zip(requests, answers, strict=True)
                ]
            ).abs()
            assert 0 < gaps.mean() < BFLOAT16_MEAN
            assert gaps.max() < BFLOAT16_LARGEST
    finally:
        engine.close()


@pytest.mark.slow
def test_biases_and_an_untied_head_are_pushed_exactly(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=50,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=48,
        max_position_embeddings=256,
        tie_word_embeddings=False,
        initializer_range=0.3,
        eos_token_id=None,
        bos_token_id=None,
    )
    model = Qwen2ForCausalLM(config).eval()
    perturb(model, "bias")  # a new model's biases are 0
    model.save_pretrained(tmp_path)
    engine = VLLMEngine(str(tmp_path), max_batch_size=16, kv_cache_gib=0.05)
    try:
        requests = requests_of(10)
        assert largest_error(model, requests, play(engine, requests)) < 1e-4
        # q, k and v without their biases, as merged adapters come: the biases stay.
        weights = {n: t for n, t in perturb(model, "self_attn").items() if n.endswith("weight")}
        originals = dict(Qwen2ForCausalLM.from_pretrained(tmp_path).named_parameters())
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name.endswith("bias"):
                    parameter.copy_(originals[name])
        publish(engine, weights, 1)
        assert largest_error(model, requests, play(engine, requests)) < 1e-4
        publish(engine, perturb(model, "lm_head"), 2)
        assert largest_error(model, requests, play(engine, requests)) < 1e-4
        publish(engine, perturb(model, "self_attn", seed=3), 3)
        assert largest_error(model, requests, play(engine, requests)) < 1e-4
    finally:
        engine.close()


@pytest.mark.slow
def test_an_engine_ends_with_a_driver_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(
        "import time\n"
        "from rllm_agents.rollout_engines.vllm import VLLMEngine\n"
        "if __name__ == '__main__':\n"
        "    engine = VLLMEngine('tiny', max_model_length=128)\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(300)\n"
    )
    driver = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None and driver.stdout.readline() == "ready\n"
    children = psutil.Process(driver.pid).children(recursive=True)
    assert any("EngineCore" in " ".join(child.cmdline()) for child in children)
    driver.kill()
    driver.wait()
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive
