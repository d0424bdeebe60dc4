from collections import Counter

import numpy as np

from rllm_envs.tool_use.draws import Draws


def make(seed=0):
    return Draws(np.random.default_rng(seed))


def test_equal_generators_give_equal_draws():
    one, two = make(5), make(5)
    assert [one.below(10) for _ in range(300)] == [two.below(10) for _ in range(300)]


def test_draws_are_uniform_over_their_range():
    draws = make()
    counts = Counter(draws.between(3, 6) for _ in range(4000))
    assert set(counts) == {3, 4, 5, 6}
    assert all(abs(count - 1000) < 150 for count in counts.values())
    assert Counter(draws.pick("ab") for _ in range(50)).keys() == {"a", "b"}


def test_a_sample_takes_each_place_once_in_any_order():
    draws = make()
    orders = Counter(tuple(draws.sample("abc", 2)) for _ in range(1200))
    assert len(orders) == 6
    assert all(abs(count - 200) < 60 for count in orders.values())
    assert sorted(draws.shuffled([1, 1, 2])) == [1, 1, 2]
    assert draws.sample([], 0) == []
