"""Where requests go: pure bookkeeping, without Ray."""

from __future__ import annotations

from collections import Counter

from rllm_agents.rollout_engines.pool_routing import Routing


def give(routing: Routing, session_id: str) -> int:
    engine = routing.choose(session_id)
    assert engine is not None
    routing.begin(engine)
    return engine


def test_new_sessions_go_to_the_engine_with_fewest_requests_in_flight() -> None:
    routing = Routing(3)
    assert sorted(give(routing, f"s{i}") for i in range(6)) == [0, 0, 1, 1, 2, 2]
    routing.end(1)
    assert give(routing, "next") == 1
    assert routing.in_flight == (2, 2, 2)


def test_turns_of_a_session_stay_where_its_prefix_is_however_much_is_to_do_there() -> None:
    routing = Routing(2)
    home = give(routing, "a")
    for i in range(5):
        routing._in_flight[home] += 10 * i
        assert routing.choose("a") == home


def test_requests_of_no_session_are_spread_one_by_one() -> None:
    routing = Routing(2)
    assert Counter(give(routing, "") for _ in range(10)) == {0: 5, 1: 5}


def test_between_equally_busy_engines_the_one_with_fewer_sessions_is_taken() -> None:
    routing = Routing(2)
    homes = []
    for i in range(8):  # each ends before the next begins
        homes.append(give(routing, f"s{i}"))
        routing.end(homes[-1])
    assert Counter(homes) == {0: 4, 1: 4}


def test_sessions_of_a_lost_engine_move_and_stay_where_they_moved_to() -> None:
    routing = Routing(2)
    home = give(routing, "a")
    routing.lose(home)
    assert routing.choose("a") == 1 - home
    assert all(give(routing, f"s{i}") == 1 - home for i in range(4))
    routing.find(home)
    assert routing.choose("a") == 1 - home
    assert give(routing, "new") == home
    assert routing.lost == frozenset()


def test_where_all_are_lost_there_is_none() -> None:
    routing = Routing(2)
    routing.lose(0)
    routing.lose(1)
    assert routing.choose("a") is None and routing.choose("") is None
    routing.find(1)
    assert routing.choose("a") == 1


def test_several_routers_do_not_all_begin_with_the_same_engine() -> None:
    assert {Routing(2).choose("first") for _ in range(64)} == {0, 1}


def test_sessions_are_forgotten_when_too_many_came_since(monkeypatch) -> None:
    monkeypatch.setattr("rllm_agents.rollout_engines.pool_routing._MOST_SESSIONS", 2)
    routing = Routing(1)
    for name in "abc":
        routing.choose(name)
    assert list(routing._engine_of) == ["b", "c"]
