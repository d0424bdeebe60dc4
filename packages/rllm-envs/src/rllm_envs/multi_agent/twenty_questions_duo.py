"""Twenty questions for two: one agent asks, the other knows the thing and answers."""

import numpy as np

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.multi_agent.checks import check_integer
from rllm_envs.multi_agent.game import IllegalMoveError, TurnGame, normalised
from rllm_envs.multi_agent.things_table import QUESTIONS, THINGS, best_question
from rllm_envs.parsing import boxed_answer
from rllm_envs.tasks import Task

ASKER, ANSWERER = "asker_0", "answerer_0"
ANSWERS = ("yes", "no", "unknown")
GUESS = "guess:"
MAX_QUESTION = 200
_BY_WORDS = {normalised(question).rstrip(" ?"): question for question in QUESTIONS}


def known_question(text: str) -> str | None:
    """Return the question of the table that a text asks, or None where it is another one."""
    return _BY_WORDS.get(normalised(text).rstrip(" ?"))


class TwentyQuestionsDuo(TurnGame):
    r"""Find a thing by questions that another agent answers.

    ## Description
    ``answerer_0`` knows which of fifty things is meant; ``asker_0`` asks questions in words of its
    own, and guesses. Both work together. A guess is judged by the game and counts as a question.
    Answers to the questions of a built-in table are checked at the end, others are not. The experts
    use the table: the asker asks what halves the things that are left.

    ## Moves
    The asker writes ``\boxed{Is it an animal?}`` (up to 200 characters) or ``\boxed{guess: cat}``.
    The answerer writes ``\boxed{yes}``, ``\boxed{no}`` or ``\boxed{unknown}``.

    ## Rewards
    1 to both if the thing is guessed in time, 0 otherwise; 0 to the answerer if a checked answer
    was false. If one of them makes no legal move, -1 to it and 0 to the other.

    ## Arguments
    ``num_questions`` (5 to 50, default 20; guesses count).
    Task: ``{"thing": "cat", "seed": 3}``.
    """

    agents = (ASKER, ANSWERER)
    lists_moves = False

    def __init__(self, *, num_questions: int = 20) -> None:
        super().__init__()
        self.num_questions = check_integer("num_questions", num_questions, 5, 50)
        self.max_moves = num_questions
        self.thing = ""
        self.log: list[tuple[str, str]] = []
        self.question = ""
        self.is_honest = True

    def generate_task(self, rng: np.random.Generator) -> Task:
        """Return ``{"thing": "cat"}``, uniform over the table."""
        return {"thing": THINGS[int(rng.integers(len(THINGS)))]}

    def split_basis(self, task: Task) -> Task:
        """Return the thing alone, so that no split meets a thing of the other."""
        return {"thing": task["thing"]}

    def validate_task(self, task: Task) -> Task:
        """Check that the table has the thing."""
        if task.get("thing") not in THINGS:
            raise TaskError(
                f"'thing' must be one of {', '.join(THINGS)}, got {excerpt(task.get('thing'))}"
            )
        return {"thing": task["thing"]}

    def set_up(self, task: Task) -> None:
        """Think of the thing."""
        self.thing = task["thing"]
        self.log = []
        self.question = ""
        self.is_honest = True
        self.current = ASKER

    def rules(self, agent: str) -> str:
        """Return what the agent has to do."""
        if agent == ASKER:
            return (
                f"You are {ASKER}. {ANSWERER} thinks of one of these things: {', '.join(THINGS)}. "
                f"Find it with at most {self.num_questions} questions that can be answered by yes "
                "or no; guesses count as questions. Ask in \\boxed{}, such as "
                "\\boxed{Is it an animal?}, and guess with \\boxed{guess: cat}."
            )
        return (
            f"You are {ANSWERER} and think of this thing: {self.thing}. {ASKER} asks questions to "
            "find it; both win if it does. Answer truthfully with \\boxed{yes}, \\boxed{no} or "
            "\\boxed{unknown}."
        )

    def view(self, agent: str) -> str:
        """Return all questions and answers."""
        lines = [f"{question} {answer}" for question, answer in self.log]
        if self.question:
            lines.append(f"The question is: {self.question}")
        elif self.scores is None:
            lines.append(f"Questions left: {self.num_questions - len(self.log)}.")
        return "\n".join(lines)

    def legal_moves(self, agent: str) -> tuple[str, ...]:
        """Return the answers to the answerer; questions are free."""
        return ANSWERS if agent == ANSWERER and self.agent_to_move == ANSWERER else ()

    def read_move(self, agent: str, text: str) -> str:
        """Return the question, the guess or the answer.

        Raises:
            IllegalMoveError: There is none, or it is too long, or guesses something else.
        """
        if agent == ANSWERER:
            return super().read_move(agent, text)
        asked = " ".join((boxed_answer(text) or "").split())
        if not asked:
            raise IllegalMoveError("Ask in \\boxed{}, such as \\boxed{Is it an animal?}.")
        if len(asked) > MAX_QUESTION:
            raise IllegalMoveError(f"A question has at most {MAX_QUESTION} characters.")
        if asked.lower().startswith(GUESS):
            guess = asked[len(GUESS) :].strip().lower()
            if guess not in THINGS:
                raise IllegalMoveError(f"{excerpt(guess, 40)} is not one of the things.")
            return f"{GUESS} {guess}"
        return asked

    def make_move(self, agent: str, move: str) -> None:
        """Ask, guess or answer."""
        if agent == ANSWERER:
            self._answer(move)
        elif move.startswith(GUESS):
            self._guess(move.removeprefix(GUESS).strip())
        else:
            self.question = move
            self.current = ANSWERER

    def forfeit_scores(self, agent: str) -> dict[str, float]:
        """Return -1 for who made no legal move and 0 for the other."""
        return {name: -1.0 if name == agent else 0.0 for name in self.agents}

    def outcome(self, agent: str) -> str:
        """Return whether the thing was found."""
        found = bool(self.log) and self.log[-1] == (f"{GUESS} {self.thing}", "yes")
        return f"The thing was {'' if found else 'not '}found: {self.thing}."

    def expert_move(self, agent: str) -> str:
        """Return an answer from the table, or the best question, or a guess once one is left."""
        if agent == ANSWERER:
            known = known_question(self.question)
            return "unknown" if known is None else self._truth(known)
        left = self._candidates()
        return f"{GUESS} {left[0]}" if len(left) <= 2 else best_question(left)

    def _truth(self, known: str) -> str:
        return "yes" if self.thing in QUESTIONS[known] else "no"

    def _candidates(self) -> list[str]:
        """Return the things that fit the answers; all that were not guessed if none does."""
        guessed = {question.removeprefix(GUESS).strip() for question, _ in self.log}
        left = [thing for thing in THINGS if thing not in guessed]
        fitting = left
        for question, answer in self.log:
            known = known_question(question)
            if known is not None and answer != "unknown":
                fitting = [t for t in fitting if (t in QUESTIONS[known]) == (answer == "yes")]
        return fitting or left or list(THINGS)

    def _guess(self, guess: str) -> None:
        is_right = guess == self.thing
        self.log.append((f"{GUESS} {guess}", "yes" if is_right else "no"))
        if is_right:
            self.end({ASKER: 1, ANSWERER: float(self.is_honest)})
        else:
            self._go_on()

    def _answer(self, answer: str) -> None:
        known = known_question(self.question)
        if known is not None and answer != self._truth(known):
            self.is_honest = False
        self.log.append((self.question, answer))
        self.question = ""
        self._go_on()

    def _go_on(self) -> None:
        self.current = ASKER
        if len(self.log) >= self.num_questions:
            self.end(dict.fromkeys(self.agents, 0))
