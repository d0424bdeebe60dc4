import io
import os
import select
import subprocess
import sys
import time

import gymnasium
import pytest

from rllm_envs.cli import main
from rllm_envs.cli.console import Console, wrapped
from rllm_envs.cli.game_table import make_table
from rllm_envs.cli.play import play_env, play_game
from rllm_envs.coding.python_code import PythonCodeEnv


def playing(typed, play, width=200):
    """What a person sees who types these lines."""
    sink = io.StringIO()
    play(Console(io.StringIO(typed), sink, width))
    return sink.getvalue()


def calculator(typed, width=200):
    env = gymnasium.make("rllm/Calculator-v0")
    return playing(typed, lambda console: play_env(env, console, 2), width)


def game(typed, env_id, kind, seats, **arguments):
    table = make_table(env_id, kind, arguments)
    return playing(typed, lambda console: play_game(table, seats, console, 3))


def test_an_episode_is_played_to_its_end():
    assert calculator("<calc>85 * 33</calc>\nIt is \\boxed{2805}.\n") == (
        "What is 85 * 33? You may write <calc>2 * 3</calc> to use a calculator. Give the answer "
        "in \\boxed{}.\n"
        "\n[turn 1 of 3] > <calc>85 * 33</calc>\nResult: 2805\n"
        "\n[turn 2 of 3] > It is \\boxed{2805}.\n"
        "\nThe end: solved, reward 1, 2 turns.\n"
    )


def test_an_episode_may_end_without_success():
    assert calculator("\\boxed{1}\n").endswith("\nThe end: not solved, reward 0, 1 turn.\n")
    spent = calculator("what?\n\nhm\n")
    assert "[turn 3 of 3] > hm\n" in spent
    assert spent.endswith("\nThe end: not solved, reward 0, 3 turns, the turns are spent.\n")


def test_a_hint_is_the_oracles_action_and_costs_no_turn():
    out = calculator("/hint\n<calc>1+1</calc>\n /hint \n/quit\n")
    assert "[turn 1 of 3] > /hint\n<calc>85 * 33</calc>\n\n[turn 1 of 3] > " in out
    assert "[turn 2 of 3] >  /hint \n\\boxed{2805}\n\n[turn 2 of 3] > " in out


@pytest.mark.parametrize("typed", ["/quit\nmore\n", "", '"""\nhalf a text\n', "/hint\n"])
def test_a_person_may_leave_and_the_input_may_end(typed):
    assert calculator(typed).endswith("You left before the end.\n")


def test_an_unknown_command_is_no_action_and_two_slashes_send_one():
    out = calculator("/help\n//5\n/quit\n")
    assert "There is no command /help; there are /hint and /quit." in out
    # The environment has read "/5", which is neither a call nor a box.
    assert "[turn 1 of 3] > //5\nWrite <calc>2 * 3</calc> to use a calculator" in out
    assert "[turn 2 of 3] > /quit" in out


def test_three_quotes_hold_a_text_of_several_lines():
    env = PythonCodeEnv(kinds=["list"])
    env.reset(seed=1)
    solution = env.oracle_action()
    assert solution.count("\n") > 2
    typed = f'"""\n{solution}\n"""\n'
    out = playing(typed, lambda console: play_env(env, console, 1))
    assert out.endswith("\nThe end: solved, reward 1, 1 turn.\n")


def test_long_lines_are_wrapped_and_short_ones_keep_their_form():
    lines = calculator("/quit\n", width=40).splitlines()
    assert max(map(len, lines[:4])) <= 40
    assert " ".join(lines[:4]).startswith("What is 85 * 33? You may write")
    board = "1 X 3\n  O  5\n\n" + "=" * 30 + "\n  - a long line of a list"
    assert wrapped(board, 20) == ("1 X 3\n  O  5\n\n" + "=" * 30 + "\n  - a long line of a\n  list")
    assert wrapped("", 20) == ""


def test_what_a_terminal_would_obey_is_not_sent_to_it():
    assert wrapped("a\x1b[2Jb\x07\tc é", 80) == "a?[2Jb?\tc é"
    sink = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Console(io.StringIO(), sink, 80).say("é\ud800")
    assert sink.buffer.getvalue() == b"??\n"


def test_a_game_of_turns_is_played_against_the_expert():
    # The expert plays a draw at least; the hints are the expert's too, so it is one.
    table = make_table("rllm/TicTacToe-v0", "aec", {})
    table.start(3)
    moves = []
    while table.movers:
        agent = table.movers[0]
        action = table.expert_action(agent)
        if agent == "player_1":
            moves.append(action)
        table.play({agent: action})
    out = game("\n".join(moves), "rllm/TicTacToe-v0", "aec", ("player_1",))
    assert out.startswith("You play noughts and crosses as player_1")
    assert out.count("You play noughts") == 1
    assert "[player_1, move 2] > " in out
    assert "It is a draw." in out
    assert out.endswith("\nThe end: player_0 0, player_1 0.\n")


def test_one_person_may_play_all_seats():
    cells = (5, 1, 2, 3, 8)  # the middle column for player_0
    typed = "".join(f"\\boxed{{{cell}}}\n" for cell in cells)
    out = game(typed, "rllm/TicTacToe-v0", "aec", ("player_0", "player_1"))
    assert "[player_0]\nO X O\n4 X 6\n7 X 9\nYou win.\n[player_1]\n" in out
    assert out.endswith("You lose.\n\nThe end: player_0 1, player_1 -1.\n")


def test_an_illegal_move_is_answered_with_a_hint_and_the_expert_gives_one_too():
    out = game("5\n/hint\n", "rllm/Nim-v0", "aec", ("player_0",))
    assert "[player_0]\nWrite your move in \\boxed{}" in out
    table = make_table("rllm/Nim-v0", "aec", {})
    table.start(3)
    assert f"> /hint\n{table.expert_action('player_0')}\n" in out
    assert out.endswith("You left before the end.\n")


def test_a_game_of_rounds_shows_what_the_seat_sees():
    out = game("\\boxed{defect}\nwhat?\n", "rllm/PrisonersDilemma-v0", "parallel", ("player_1",),
               num_rounds=2)  # fmt: skip
    assert "[player_1, move 1] > \\boxed{defect}" in out
    assert "Round 2 of 2: your move." in out
    assert "[player_0]" not in out
    totals = out.rpartition("The end: player_0 ")[2]
    assert "The game is over. You earned " + totals.split("player_1 ")[1].rstrip(".\n") in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rllm/Maths-v0"], "no environment is registered as 'rllm/Maths-v0'"),
        (["CartPole-v1"], "its actions are Discrete(2), not text"),
        (["rllm/Math-v0", "--seed", "x"], "argument --seed: must be an integer"),
        (["rllm/Math-v0", "--arg", "size=5"], "rllm/Math-v0 has no argument 'size'"),
        (["rllm/Math-v0", "--seat", "player_0"], "rllm/Math-v0 has no argument 'seat'"),
        (["rllm/Nim-v0", "--kind", "aec", "--seat", "me"], "one of player_0, player_1, all"),
        (["rllm/Nim-v0", "-a", "num_piles=0"], "num_piles"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_two(capsys, arguments, message):
    assert main(["play", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_the_command_takes_seed_and_arguments_and_names_a_seed_that_it_draws():
    command = [sys.executable, "-m", "rllm_envs", "play"]

    def output(*arguments, typed):
        done = subprocess.run(
            [*command, *arguments], input=typed, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        return done.stdout

    out = output("rllm/TicTacToe-v0", "--seat", "first", "-a", "opponent=expert", typed="/hint\n")
    seed = out.partition("rllm/TicTacToe-v0, seed ")[2].split("\n")[0]
    assert seed.isdecimal()
    env = gymnasium.make("rllm/TicTacToe-v0", seat="first", opponent="expert")
    words = env.reset(seed=int(seed))[0].split()
    assert out.partition("another one ends it.")[2].split()[: len(words)] == words
    out = output("rllm/Arithmetic-v0", "--seed", "1", "-a", "digits=1", typed="/quit\n")
    assert "rllm/Arithmetic-v0, seed 1\n" in out
    assert out.endswith("You left before the end.\n")


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_at_a_terminal_a_line_can_be_edited():
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "rllm_envs", "play", "rllm/Calculator-v0", "--seed", "2"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = read_until(ours, b"[turn 1 of 3] > ")
        # ctrl-A goes to the beginning of the line.
        os.write(ours, b"2805}\x01\\boxed{\r")
        shown += read_until(ours, b"1 turn.")
        assert process.wait(timeout=20) == 0
    os.close(ours)
    assert b"The end: solved, reward 1, 1 turn." in shown


def read_until(descriptor, text, seconds=20.0):
    shown, deadline = b"", time.monotonic() + seconds
    while text not in shown and time.monotonic() < deadline:
        if select.select([descriptor], [], [], 0.1)[0]:
            try:
                shown += os.read(descriptor, 4096)
            except OSError:  # the other end is closed
                break
    return shown
