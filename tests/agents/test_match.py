from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from agents_fakes import ByteEngine, EchoAgent, bytes_renderer
from workflow_fakes import FaultyEngine, TaggedEngine

from rllm_agents import (
    ChatAgent,
    Episode,
    MatchSetting,
    Player,
    RolloutLimits,
    SamplingParams,
    TerminationReason,
    UserError,
    run_match,
)
from rllm_agents.match import seats_of
from rllm_envs.multi_agent import GAMES, make_aec, make_parallel
from rllm_envs.multi_agent.rock_paper_scissors import RockPaperScissors
from rllm_envs.multi_agent.tictactoe import TicTacToe

TICTACTOE, ROSHAMBO = "rllm/TicTacToe-v0", "rllm/RockPaperScissors-v0"


def play(env: Any, players: Any, *, setting: MatchSetting | None = None, **arguments: Any):
    arguments.setdefault("seed", 0)
    return asyncio.run(run_match(env, players, setting=setting, **arguments))


def model(engine: Any, **arguments: Any) -> Player:
    arguments.setdefault("renderer", bytes_renderer())
    return Player(arguments.pop("agent", ChatAgent), engine, **arguments)


def sampled(episode: Episode) -> list[str]:
    return [
        bytes(i for i in record.token_ids[turn.start : turn.stop] if i < 256).decode()
        for trajectory in episode.trajectories
        for record in trajectory.token_records
        for turn in record.turns
    ]


@pytest.mark.parametrize("env_id", [game.id for game in GAMES])
def test_experts_play_every_game_to_its_end_and_rewards_are_those_of_steps(env_id: str) -> None:
    episode = play(env_id, dict.fromkeys(seats_of(env_id), "expert"))
    assert (episode.termination_reason, episode.error) == (TerminationReason.ENV_DONE, None)
    for trajectory in episode.trajectories:
        assert sum(step.reward for step in trajectory.steps) == trajectory.reward
        assert [step.done for step in trajectory.steps][-1:] in ([True], [])
        assert trajectory.token_records == ()
        seat = trajectory.info["player"]
        assert episode.metrics[f"reward/{seat}"] == trajectory.reward


def test_rewards_are_those_that_the_environment_gives_when_it_is_driven_by_hand() -> None:
    env = make_parallel(ROSHAMBO)
    env.reset(seed=5)
    rounds = []
    while env.agents:
        actions = {agent: env.expert_action(agent) for agent in env.agents}
        rounds.append(env.step(actions)[1])
    episode = play(ROSHAMBO, {"player_0": "expert", "player_1": "expert"}, seed=5)
    for trajectory in episode.trajectories:
        assert [s.reward for s in trajectory.steps] == [r[trajectory.name] for r in rounds]


@pytest.mark.parametrize("env_id", [TICTACTOE, ROSHAMBO])
def test_each_player_has_a_conversation_and_tokens_of_its_own(env_id: str) -> None:
    engine = TaggedEngine()

    class Named(ChatAgent):
        def update_from_env(self, observation: Any, *args: Any, **kwargs: Any) -> None:
            super().update_from_env(f"{observation} {self.name}", *args, **kwargs)

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    words = {"player_0": "\\boxed{1}", "player_1": "\\boxed{2}"}
    players = {
        seat: model(engine, agent=Named, agent_args={"name": word}) for seat, word in words.items()
    }
    episode = play(env_id, players)
    assert episode.error is None
    assert sorted(sampled(episode)) == sorted(engine.sampled)
    for trajectory in episode.trajectories:
        (record,) = trajectory.token_records
        assert len(record.turns) == len(trajectory.steps)
        for turn, step in zip(record.turns, trajectory.steps, strict=True):
            assert step.model_response.startswith(f"{words[trajectory.name]}=")
            _, completion = engine.sampled[step.model_response]
            assert record.token_ids[turn.start : turn.stop] == completion.token_ids
            assert record.logprobs[turn.start : turn.stop] == completion.logprobs


def test_a_player_sees_no_card_of_another() -> None:
    cards = {}
    for seed in range(6):
        episode = play(
            "rllm/KuhnPoker-v0",
            dict.fromkeys(("player_0", "player_1"), model(ByteEngine("\\boxed{bet}"))),
            seed=seed,
        )
        env = make_aec("rllm/KuhnPoker-v0")
        env.reset(seed=seed)
        for trajectory in episode.trajectories:
            if trajectory.steps:
                shown = trajectory.steps[0].observation
                assert str(shown).startswith(env.game.rules(trajectory.name))
                assert env.game.view(trajectory.name).splitlines()[0] in shown
                cards[seed, trajectory.name] = shown
    assert len(set(cards.values())) > 3


def test_opponents_that_do_not_learn_leave_no_tokens_for_training() -> None:
    engine = TaggedEngine()
    episode = play(
        TICTACTOE, {"player_0": model(engine, learns=False), "player_1": model(engine, name="me")}
    )
    frozen, learner = episode.trajectories
    assert (frozen.token_records, frozen.info["learns"]) == ((), False)
    assert len(frozen.steps) == 3
    assert (learner.name, learner.info["player"]) == ("me", "player_1")
    # player_0 forfeits after three illegal texts, before the learner's first move.
    assert (frozen.reward, learner.reward, episode.is_correct) == (-1.0, 1.0, True)


def test_the_same_seed_is_the_same_match_and_every_turn_samples_from_another_stream() -> None:
    def seeds(match_id: str) -> list[int | None]:
        engine = ByteEngine("\\boxed{rock}")
        players = dict.fromkeys(
            ("player_0", "player_1"), model(engine, sampling=SamplingParams(seed=1))
        )
        play(ROSHAMBO, players, match_id=match_id)
        return sorted(request.sampling.seed or 0 for request in engine.requests)

    assert seeds("a") == seeds("a")
    assert len({*seeds("a"), *seeds("b")}) == 40
    one, two = (
        play(TICTACTOE, {"player_0": "random", "player_1": "random"}, seed=7) for _ in range(2)
    )
    assert [[s.action for s in t.steps] for t in one.trajectories] == [
        [s.action for s in t.steps] for t in two.trajectories
    ]


def test_a_given_task_is_played() -> None:
    env = make_aec("rllm/Nim-v0")
    env.reset(seed=3)
    task = env.task
    seen: list[str] = []

    def watch(observation: Any, info: dict[str, Any]) -> str:
        seen.append(str(observation))
        return info["action_mask"][0]

    episode = play("rllm/Nim-v0", {"player_0": watch, "player_1": "expert"}, task=task, seed=99)
    first = env.agent_selection
    if first == "player_0":
        assert seen[0] == str(env.observe("player_0"))
    assert episode.task == task
    assert all(t.task == task for t in episode.trajectories)


@pytest.mark.parametrize(
    "env",
    [TicTacToe(), lambda: make_aec(TICTACTOE), RockPaperScissors()],
    ids=["rules in turns", "function", "rules in rounds"],
)
def test_rules_and_functions_are_environments_too(env: Any) -> None:
    assert play(env, {"player_0": "expert", "player_1": "random"}).error is None


def test_an_environment_that_is_passed_ready_stays_open() -> None:
    class Watched:
        def __init__(self) -> None:
            self.inner, self.num_closed = make_aec(TICTACTOE), 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def close(self) -> None:
            self.num_closed += 1

    ready, made = Watched(), Watched()
    for env in (ready, lambda: made):
        assert play(env, {"player_0": "expert", "player_1": "random"}).error is None
    assert (ready.num_closed, made.num_closed) == (0, 1)


# What goes wrong


class Broken:
    """Tic-tac-toe in which one method misbehaves."""

    def __init__(self, method: str, result: Any) -> None:
        self._inner, self._method, self._result = make_aec(TICTACTOE), method, result
        self.num_closed = 0

    def __getattr__(self, name: str) -> Any:
        if name != self._method:
            return getattr(self._inner, name)

        def broken(*args: Any, **kwargs: Any) -> Any:
            if isinstance(self._result, BaseException):
                raise self._result
            if callable(self._result):
                return self._result(getattr(self._inner, name), *args, **kwargs)
            return self._result

        return broken

    def close(self) -> None:
        self.num_closed += 1


def bad_reward(last: Any) -> Any:
    observation, _, terminated, truncated, info = last()
    return observation, float("nan"), terminated, truncated, info


def hang(step: Any, action: Any) -> None:
    time.sleep(1.0)


R = TerminationReason


@pytest.mark.parametrize(
    ("method", "result", "reason"),
    [
        ("reset", ValueError("no board"), R.ENV_EXCEPTION),
        ("step", ValueError("no move"), R.ENV_EXCEPTION),
        ("step", SystemExit(1), R.ENV_EXIT),
        ("step", asyncio.CancelledError(), R.ENV_LEAKED_CANCEL),
        ("last", (1, 2), R.ENV_EXCEPTION),
        ("last", bad_reward, R.ENV_BAD_REWARD),
        ("last", ("view", 0.0, False, False, None), R.ENV_PROTOCOL),
        ("step", hang, R.ENV_STEP_TIMEOUT),
    ],
)
def test_faults_of_the_environment_are_labelled(method: str, result: Any, reason: R) -> None:
    env = Broken(method, result)
    setting = MatchSetting(limits=RolloutLimits(step_timeout_seconds=0.3))
    episode = play(
        lambda: env, {"player_0": lambda o, i: "\\boxed{a1}", "player_1": "random"}, setting=setting
    )
    assert episode.termination_reason is reason
    assert (episode.reward, episode.is_correct) == (None, False)
    assert episode.error
    assert [t.reward for t in episode.trajectories] == [None, None]
    assert env.num_closed == 1


class Raises(EchoAgent):
    def update_from_model(self, response: str, **kwargs: Any) -> Any:
        raise SystemExit("agent left")


@pytest.mark.parametrize("env_id", [TICTACTOE, ROSHAMBO])
@pytest.mark.parametrize(
    ("player", "reason"),
    [
        (lambda observation, info: 1 / 0, R.AGENT_EXCEPTION),
        (model(ByteEngine("x"), agent=Raises), R.AGENT_EXCEPTION),
        (model(FaultyEngine(lambda n: ValueError("no") if n > 1 else None)), R.LLM_ERROR),
    ],
    ids=["script", "agent", "engine"],
)
def test_faults_of_a_player_are_labelled(env_id: str, player: Any, reason: R) -> None:
    episode = play(env_id, {"player_0": player, "player_1": "random"})
    assert (episode.termination_reason, episode.reward) == (reason, None)
    assert len(episode.trajectories) == 2


@pytest.mark.parametrize(
    ("env", "players", "problem"),
    [
        ("rllm/Chess-v0", {}, "rllm/TicTacToe-v0"),
        (3, {}, "env must be an id"),
        (TICTACTOE, {"player_0": "expert"}, "players must be player_0, player_1"),
        (TICTACTOE, {"player_0": "expert", "player_1": "strong"}, "'expert' or 'random'"),
    ],
)
def test_mistakes_are_raised(env: Any, players: Any, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        play(env, players)


@pytest.mark.parametrize("env_id", [TICTACTOE, ROSHAMBO])
def test_a_response_that_is_cut_off_is_no_move(env_id: str) -> None:
    setting = MatchSetting(limits=RolloutLimits(max_response_length=20_000))
    engine = ByteEngine("\\boxed{rock}" + "!" * 50)
    cut = model(engine, sampling=SamplingParams(max_tokens=20))
    episode = play(env_id, {"player_0": cut, "player_1": "expert"}, setting=setting)
    assert episode.termination_reason is TerminationReason.ENV_DONE
    steps = episode.trajectories[0].steps
    assert {step.action for step in steps} == {""}
    assert episode.metrics["cut_off"] == len(steps) > 0
    assert (episode.trajectories[0].reward or 0.0) < 0.0


def test_a_player_without_tokens_left_plays_on_without_the_model() -> None:
    setting = MatchSetting(limits=RolloutLimits(max_response_length=700))
    engine = ByteEngine("\\boxed{rock}")
    episode = play(ROSHAMBO, {"player_0": model(engine), "player_1": "expert"}, setting=setting)
    assert episode.termination_reason is TerminationReason.ENV_DONE
    assert 0 < len(engine.requests) < 10
    assert episode.metrics["cut_off"] == 10 - len(engine.requests)


def test_turns_and_seconds_of_a_match_are_bounded() -> None:
    players = {"player_0": "random", "player_1": "random"}
    for env_id in (TICTACTOE, ROSHAMBO):
        setting = MatchSetting(limits=RolloutLimits(max_steps=2))
        episode = play(env_id, players, setting=setting)
        assert episode.termination_reason is TerminationReason.MAX_TURNS_EXCEEDED
        assert [len(t.steps) for t in episode.trajectories] == [2, 2]
    setting = MatchSetting(limits=RolloutLimits(trajectory_timeout_seconds=0.2))
    slow = model(ByteEngine("\\boxed{rock}", seconds=0.05))
    start = time.perf_counter()
    episode = play(ROSHAMBO, {"player_0": slow, "player_1": "random"}, setting=setting)
    assert time.perf_counter() - start < 1.5
    assert (episode.termination_reason, episode.error) == (TerminationReason.TIMEOUT, None)


def test_a_match_is_cancelled_within_two_seconds_and_its_environment_closed() -> None:
    env = Broken("nothing", None)

    async def main() -> float:
        players = dict.fromkeys(("player_0", "player_1"), model(ByteEngine("x", seconds=60.0)))
        match = asyncio.create_task(run_match(lambda: env, players))
        await asyncio.sleep(0.2)
        start = time.perf_counter()
        match.cancel()
        with pytest.raises(asyncio.CancelledError):
            await match
        return time.perf_counter() - start

    assert asyncio.run(main()) < 2.0
    assert env.num_closed == 1


def test_an_agent_that_keeps_its_own_steps_plays_too() -> None:
    from rllm_agents import Action, Step

    class Keeps(EchoAgent):
        def reset(self) -> None:
            super().reset()
            self._trajectory = type(self.trajectory)()

        def update_from_model(self, response: str, **kwargs: Any) -> Action:
            self.trajectory.steps.append(Step(thought="mine"))
            return super().update_from_model(response)

    player = model(ByteEngine("\\boxed{paper}"), agent=Keeps)
    episode = play(ROSHAMBO, {"player_0": player, "player_1": "random"})
    steps = episode.trajectories[0].steps
    assert [step.thought for step in steps] == ["mine"] * 10
    assert sum(step.reward for step in steps) == episode.trajectories[0].reward
