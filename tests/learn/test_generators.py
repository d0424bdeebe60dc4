from __future__ import annotations

import random

import numpy as np
import torch

from rllm_learn.core.generators import generator_states, set_generator_states


def draw():
    return [random.random(), random.gauss(0, 1), *np.random.randn(3), *torch.randn(3).tolist()]


def test_every_generator_goes_on_where_it_was_saved(tmp_path):
    before = generator_states()
    try:
        draw()  # an odd number of normal draws leaves one in store
        torch.save(generator_states(), tmp_path / "generators.pt")
        expected = draw()
        draw()
        set_generator_states(torch.load(tmp_path / "generators.pt", weights_only=True))
        assert draw() == expected
    finally:
        set_generator_states(before)
