from __future__ import annotations

import time
from typing import Any

from agents_fakes import (
    IM_END,
    ByteEngine,
    ByteTokenizer,
    CountingEnv,
    EchoAgent,
    Ledger,
    ThreadedEnv,
    bytes_renderer,
    play_episode,
    thought_stripping_chatml,
)

from rllm_agents import (
    Action,
    Renderer,
    SamplingParams,
    Step,
    TerminationReason,
)
from rllm_agents.model_calls import derive_seed

# What an episode holds


def test_an_episode_holds_what_happened_step_by_step() -> None:
    task = {"rewards": [0.25, 1.0]}
    episode = play_episode(task, gamma=0.5)
    assert episode.id == "e1"
    assert episode.termination_reason is TerminationReason.ENV_DONE
    assert (episode.reward, episode.is_correct, episode.error) == (1.25, True, None)
    assert episode.task == task
    assert episode.trajectory.task == task
    one, two = episode.steps
    assert (one.observation, one.model_response, one.action) == ("start", "yes", "yes")
    assert (two.observation, two.model_response, two.action) == ("turn 1", "no", "no")
    assert (one.reward, one.done, two.reward, two.done) == (0.25, False, 1.0, True)
    assert (one.info, two.info) == ({"turn": 1}, {"turn": 2})
    # Returns by hand: 1.0, then 0.25 + 0.5 * 1.0.
    assert (one.mc_return, two.mc_return) == (0.75, 1.0)
    assert two.chat_completions == [
        {"role": "user", "content": "start"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "turn 1"},
        {"role": "assistant", "content": "no"},
    ]
    assert episode.metrics["num_steps"] == 2.0
    assert episode.metrics["env_seconds"] > 0.0


def test_token_ids_and_logprobs_stand_in_the_steps_and_in_the_records() -> None:
    episode = play_episode(
        {"rewards": [0.0, 1.0]}, engine=ByteEngine("ab", "c"), renderer=bytes_renderer()
    )
    one, two = episode.steps
    assert one.response_ids == [*b"ab", IM_END]
    assert one.logprobs == [-1 / 1024, -2 / 1024, -3 / 1024]
    assert two.prompt_ids[: len(one.prompt_ids) + 3] == [*one.prompt_ids, *b"ab", IM_END]
    (record,) = episode.trajectory.token_records
    assert list(record.token_ids) == [*two.prompt_ids, *b"c", IM_END]
    assert [span.weights_version for span in record.turns] == [7, 7]
    assert episode.metrics["response_tokens"] == 5.0
    assert episode.metrics["prompt_tokens"] == len(one.prompt_ids)


def test_a_rewriting_template_gives_several_records_of_one_trajectory() -> None:
    episode = play_episode(
        {"rewards": [0.0, 0.0, 1.0]},
        engine=ByteEngine("<think>x</think>a", "b", "c"),
        renderer=Renderer(ByteTokenizer(thought_stripping_chatml)),
    )
    records = episode.trajectory.token_records
    assert [[s.step_index for s in r.turns] for r in records] == [[0], [1, 2]]


def test_correctness_is_what_the_environment_says_where_it_says_it() -> None:
    class Judged(CountingEnv):
        def step(self, action: Any) -> Any:
            return "o", 0.1, True, {"success": False}

    assert play_episode({"rewards": [0.1]}).is_correct
    assert not play_episode(env_class=Judged).is_correct


def test_an_agent_that_appends_its_own_steps_keeps_them() -> None:
    class Keeper(EchoAgent):
        def update_from_model(self, response: str, **kwargs: Any) -> Action:
            action = super().update_from_model(response)
            step = Step(thought="hm", chat_completions=[{"role": "user", "content": "mine"}])
            self.trajectory.steps.append(step)
            step.info["note"] = response
            return action

    episode = play_episode({"rewards": [0.0, 2.0]}, agent=Keeper)
    assert [step.thought for step in episode.steps] == ["hm", "hm"]
    assert episode.steps[1].info == {"note": "no", "turn": 2}
    assert episode.steps[1].chat_completions == [{"role": "user", "content": "mine"}]
    assert (episode.steps[1].reward, episode.steps[1].model_response) == (2.0, "no")


def test_an_agent_that_returns_a_bare_value_acts_with_it() -> None:
    class Bare(EchoAgent):
        def update_from_model(self, response: str, **kwargs: Any) -> Any:
            super().update_from_model(response)
            return [response, 1]

    assert play_episode(agent=Bare).steps[0].action == ["yes", 1]


# Limits


def test_the_engine_is_asked_at_most_max_steps_times() -> None:
    episode = play_episode({"rewards": [0.5] * 10}, max_steps=3)
    assert episode.termination_reason is TerminationReason.MAX_TURNS_EXCEEDED
    assert (len(episode.steps), episode.reward) == (3, 1.5)


def first_prompt_length() -> int:
    return len(bytes_renderer().prompt_ids([{"role": "user", "content": "start"}]))


def test_a_first_prompt_of_exactly_the_limit_is_answered() -> None:
    engine = ByteEngine("a")
    episode = play_episode(
        engine=engine, renderer=bytes_renderer(), max_prompt_length=first_prompt_length()
    )
    assert episode.termination_reason is TerminationReason.ENV_DONE


def test_a_first_prompt_of_one_token_more_ends_the_episode_before_the_engine_is_asked() -> None:
    engine, ledger = ByteEngine("a"), Ledger()
    episode = play_episode(
        {"ledger": ledger},
        engine=engine,
        renderer=bytes_renderer(),
        max_prompt_length=first_prompt_length() - 1,
    )
    assert episode.termination_reason is TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED
    assert engine.requests == []
    assert (episode.reward, episode.failed, episode.steps) == (0.0, False, [])
    assert ledger.is_balanced


def test_a_prompt_of_megabytes_is_too_long_without_being_tokenised() -> None:
    tokenizer = ByteTokenizer()
    renderer = Renderer(tokenizer, max_prompt_characters=1000)
    before = tokenizer.num_encoded_characters
    episode = play_episode({"question": "x" * 5_000_000}, engine=ByteEngine("a"), renderer=renderer)
    assert episode.termination_reason is TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED
    assert tokenizer.num_encoded_characters == before


def test_each_call_may_use_what_earlier_turns_left_of_the_response_tokens() -> None:
    engine = ByteEngine("abc", "d")
    episode = play_episode(
        {"rewards": [0.0, 1.0]}, engine=engine, renderer=bytes_renderer(), max_response_length=100
    )
    first, second = engine.requests
    used = len(second.prompt_ids or ()) - len(first.prompt_ids or ())
    assert used > len("abc")
    assert [r.sampling.max_tokens for r in (first, second)] == [100, 100 - used]
    assert episode.reward == 1.0


def test_a_completion_cut_by_length_ends_the_episode_and_never_reaches_the_environment() -> None:
    ledger, seen = Ledger(), []

    class Watching(EchoAgent):
        def update_from_model(self, response: str, **kwargs: Any) -> Action:
            seen.append(response)
            return super().update_from_model(response)

    episode = play_episode(
        {"ledger": ledger},
        engine=ByteEngine("abcdef"),
        agent=Watching,
        renderer=bytes_renderer(),
        max_response_length=4,
    )
    assert episode.termination_reason is TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED
    assert (ledger.actions, seen) == ([], [])
    (step,) = episode.steps
    assert (step.model_response, step.reward, step.response_ids) == ("abcd", 0.0, [*b"abcd"])
    assert (episode.reward, episode.failed) == (0.0, False)
    (record,) = episode.trajectory.token_records
    assert record.token_ids[-4:] == tuple(b"abcd")


def test_a_completion_that_just_fits_goes_on() -> None:
    # Four bytes and the stop token.
    episode = play_episode(
        engine=ByteEngine("abcd"), renderer=bytes_renderer(), max_response_length=5
    )
    assert episode.termination_reason is TerminationReason.ENV_DONE


def test_no_room_after_an_observation_ends_the_episode_without_another_call() -> None:
    engine = ByteEngine("abcd")
    episode = play_episode(
        {"rewards": [0.5, 1.0]}, engine=engine, renderer=bytes_renderer(), max_response_length=5
    )
    assert episode.termination_reason is TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED
    assert len(engine.requests) == 1
    assert episode.reward == 0.5


def test_max_tokens_of_the_sampling_parameters_bounds_each_call() -> None:
    engine = ByteEngine("abcdef")
    episode = play_episode(
        engine=engine, renderer=bytes_renderer(), sampling=SamplingParams(max_tokens=2)
    )
    assert engine.requests[0].sampling.max_tokens == 2
    assert episode.termination_reason is TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED


def test_an_engine_is_never_asked_for_more_than_its_model_holds() -> None:
    engine = ByteEngine("a")
    engine.max_model_length = first_prompt_length() + 5  # type: ignore[attr-defined]
    play_episode(engine=engine, renderer=bytes_renderer())
    assert engine.requests[0].sampling.max_tokens == 5
    engine.max_model_length = first_prompt_length()  # type: ignore[attr-defined]
    episode = play_episode(engine=engine, renderer=bytes_renderer())
    assert episode.termination_reason is TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED


def test_the_trajectory_timeout_is_an_outcome_that_keeps_the_rewards_so_far() -> None:
    ledger = Ledger()
    episode = play_episode(
        {"rewards": [0.5] * 50, "ledger": ledger},
        engine=ByteEngine("a", seconds=0.1),
        trajectory_timeout_seconds=0.25,
    )
    assert episode.termination_reason is TerminationReason.TIMEOUT
    assert episode.reward == 1.0
    assert not episode.failed
    assert ledger.is_balanced


def test_the_trajectory_timeout_ends_episodes_that_never_wait() -> None:
    episode = play_episode(
        {"rewards": [0.0] * 10**6}, max_steps=10**6, trajectory_timeout_seconds=0.1
    )
    assert episode.termination_reason is TerminationReason.TIMEOUT


def test_the_trajectory_timeout_covers_a_hanging_environment() -> None:
    start = time.perf_counter()
    episode = play_episode(
        {"fault": "step:hang", "hang_seconds": 0.8},
        env_class=ThreadedEnv,
        trajectory_timeout_seconds=0.1,
    )
    assert episode.termination_reason is TerminationReason.TIMEOUT
    assert time.perf_counter() - start < 2.0


# Seeds


def test_seeds_are_stable_numbers_that_differ_by_use() -> None:
    seeds = {derive_seed(s, t) for s in range(20) for t in range(20)}
    assert len(seeds) == 400
    assert all(0 <= seed < 2**63 for seed in seeds if seed is not None)
    assert derive_seed(3, "a", 1) == derive_seed(3, "a", 1) == 6013746078666741066
    assert derive_seed(None, 1) is None


def test_every_turn_has_a_seed_of_its_own_derived_from_the_requests() -> None:
    engine = ByteEngine("a")
    play_episode({"rewards": [0, 0, 1]}, engine=engine, request_sampling=SamplingParams(seed=5))
    assert [r.sampling.seed for r in engine.requests] == [derive_seed(5, t) for t in range(3)]


def test_the_engines_seed_is_mixed_with_the_id_of_the_request() -> None:
    engine = ByteEngine("a")
    play_episode(engine=engine, sampling=SamplingParams(seed=5, temperature=0.5))
    (request,) = engine.requests
    assert request.sampling.seed == derive_seed(derive_seed(5, "e1"), 0)
    assert request.sampling.temperature == 0.5


def test_requests_say_what_the_model_reads_and_to_which_session_it_belongs() -> None:
    engine = ByteEngine("a")
    play_episode({"rewards": [0, 1]}, engine=engine, renderer=bytes_renderer())
    one, two = engine.requests
    assert one.messages == ({"role": "user", "content": "start"},)
    assert one.prompt_ids == bytes_renderer().prompt_ids(one.messages)
    assert one.session_id == two.session_id
    play_episode(engine=engine)
    assert engine.requests[-1].session_id != one.session_id
    assert engine.requests[-1].prompt_ids is None
