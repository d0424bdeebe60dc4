"""``rllm/Countdown-v0`` and ``rllm/Game24-v0``: reach a target with given numbers."""

from rllm_envs.countdown_rewards import judge_expression
from rllm_envs.errors import EnvArgumentError, TaskError, excerpt
from rllm_envs.reasoning.countdown_search import find_expression
from rllm_envs.reasoning.draws import draw_integer, draw_item
from rllm_envs.reasoning.fields import flag_argument, integer_argument, integers_field
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.tasks import Task

MAX_GIVEN_NUMBER = 10_000


class CountdownEnv(SolvedEnv):
    r"""Write an expression of given numbers that has a given value.

    ## Description
    The agent combines numbers by ``+ - * /`` and parentheses so that the result is the target. Each
    number may be used once, and need not be used unless ``use_all`` is set. Division is exact, so
    results on the way may be fractions.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer, an
    expression such as ``(25 - 3) * 4``; ``= 88`` may follow. Other operators, and numbers that are
    not given, are wrong.

    ## Observation Space
    The numbers, the target and the rules. The last observation is empty.

    ## Starting State
    Numbers uniform from 1 to ``max_number``. Without ``target`` the target is what a random
    combination of some of them gives, between 10 and ``max_target`` and none of the numbers; with
    ``target`` numbers are drawn until the target can be reached. Every task can be solved.

    ## Rewards
    1 for any expression with the right value, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``num_numbers`` (3 to 6, default 4), ``max_number`` (9 to 100, default 50), ``max_target`` (20
    to 1,000, default 100), ``target`` (a fixed target, 1 to 1,000; default None; with at most 4
    numbers), ``use_all`` (each number must be used; default False), ``split`` ("train", "test" or
    "all"). ``rllm/Game24-v0`` has four numbers from 1 to 13, all to be used, and the target 24;
    ``rllm/CountdownHard-v0`` six numbers up to 100 and targets up to 1,000.
    Task: ``{"numbers": [3, 7, 25, 4], "target": 88}``, ``use_all`` and ``answer`` optional. With
    five or six numbers and no ``answer`` the task must be solvable in whole numbers.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_numbers: int = 4,
        max_number: int = 50,
        max_target: int = 100,
        target: int | None = None,
        use_all: bool = False,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.num_numbers = integer_argument("num_numbers", num_numbers, 3, 6)
        self.max_number = integer_argument("max_number", max_number, 9, 100)
        self.max_target = integer_argument("max_target", max_target, 20, 1000)
        self.use_all = flag_argument("use_all", use_all)
        if target is not None:
            integer_argument("target", target, 1, 1000)
            if num_numbers > 4:
                raise EnvArgumentError(
                    f"a fixed target needs num_numbers of 3 or 4, got {num_numbers}"
                )
        self.target = target

    def draw(self) -> Task:
        """Return numbers and a target that they reach."""
        while True:
            numbers = [
                draw_integer(self.np_random, 1, self.max_number) for _ in range(self.num_numbers)
            ]
            target = self.target
            if target is None:
                target = self._reachable(numbers)
                is_usable = 10 <= target <= self.max_target and target not in numbers
            else:
                is_usable = find_expression(numbers, target, use_all=self.use_all) is not None
            if is_usable:
                task: Task = {"numbers": numbers, "target": target}
                return {**task, "use_all": True} if self.use_all else task

    def _reachable(self, numbers: list[int]) -> int:
        """Return the value of a random combination, positive and whole at every step."""
        pool = list(numbers)
        steps = len(numbers) - 1
        if not self.use_all:
            steps = draw_integer(self.np_random, 2, steps)
        for _ in range(steps):
            places = [int(place) for place in self.np_random.permutation(len(pool))[:2]]
            first, second = sorted((pool[place] for place in places), reverse=True)
            results = [first + second, first * second]
            if first > second:
                results.append(first - second)
            if second > 1 and first % second == 0:
                results.append(first // second)
            result = draw_item(self.np_random, results)
            pool = [value for place, value in enumerate(pool) if place not in places] + [result]
        return pool[-1]

    def check(self, task: Task) -> None:
        """Check the numbers and the target."""
        integers_field(task, "numbers", (1, MAX_GIVEN_NUMBER), (1, 6))
        integers_field({"target": [task.get("target")]}, "target", (1, 10**6), (1, 1))
        if not isinstance(task.get("use_all", False), bool):
            raise TaskError(f"'use_all' must be true or false, got {excerpt(task['use_all'])}")

    def validate_task(self, task: Task) -> Task:
        """Return a given task with an answer; one that is given and right is not searched for."""
        self.check(task)
        answer = task.get("answer")
        if isinstance(answer, str) and self.grade(task, answer):
            return task
        return super().validate_task(task)

    def question(self, task: Task) -> str:
        """Return the numbers, the target and the rules."""
        numbers = ", ".join(map(str, task["numbers"]))
        use = "exactly once" if task.get("use_all", False) else "at most once"
        return (
            f"Reach {task['target']} with the numbers {numbers}. Use each number {use}, with "
            "+ - * / and parentheses. Give the expression in \\boxed{}."
        )

    def solve(self, task: Task) -> str:
        """Return an expression found by search.

        Raises:
            TaskError: The target cannot be reached.
        """
        expression = find_expression(
            task["numbers"], task["target"], use_all=task.get("use_all", False)
        )
        if expression is None:
            raise TaskError(f"no expression of {task['numbers']} was found for {task['target']}")
        return expression

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an expression follows the rules and has the value of the target."""
        use_all = task.get("use_all", False)
        outcome = judge_expression(answer, task["numbers"], task["target"], use_all=use_all)
        return outcome == "correct"
