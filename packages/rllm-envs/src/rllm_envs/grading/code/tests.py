"""The tests of a task, read from the forms in which data sets write them.

- ``inputs`` and ``outputs``, with ``fn_name`` for calls: APPS, TACO.
- ``tests``: dicts of ``input``, ``output`` and ``testtype``; ``metadata`` may name the function:
  LiveCodeBench. To a method of ``Solution`` the names are known that LeetCode gives it.
- ``test``, which defines ``check(candidate)`` or functions ``test_...()``, or asserts, and
  ``entry_point``: HumanEval, LeetCode.
- ``test_list``, with ``test_setup_code``: MBPP.
"""

import ast
import builtins
import json
import re
import symtable
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.grading.code import values

MAX_TESTS = 1000
MAX_TEST_CHARACTERS = 4 * 2**20
TESTS_FIELDS = ("tests", "test_cases", "input_output", "private_test_cases")


@dataclass(frozen=True, slots=True)
class CallTest:
    """One call and what it must return. Made by ``read_tests``, read by ``code.grader``."""

    arguments: str
    """``[positional, named]`` as ``values.dumps`` writes it."""
    expected: Any
    """What must come back."""
    is_json: bool = True
    """Whether ``expected`` was written in JSON, which has no tuples."""
    is_wrapped: bool = False
    """Whether ``expected`` may be a list around what must come back, as APPS writes it."""

    @property
    def accepted(self) -> tuple[Any, ...]:
        """What may come back."""
        return (self.expected, self.expected[0]) if self.is_wrapped else (self.expected,)


@dataclass(frozen=True, slots=True)
class StdinTest:
    """What a program reads and what it must print. Made by ``read_tests``, read by the grader."""

    stdin: str
    """What it reads."""
    expected: str
    """What it must print; white space at the ends of lines does not count."""


@dataclass(frozen=True, slots=True)
class AssertTest:
    """Code that calls the solution and asserts. Made by ``read_tests``, read by the grader."""

    code: str
    """It passes where it runs to its end."""
    proxies: Mapping[str, str]
    """Names that it uses, and what each is in the solution."""


Test = CallTest | StdinTest | AssertTest


@dataclass(frozen=True, slots=True)
class TestSuite:
    """All tests of a task. Made by ``read_tests``, read by ``code.grader``."""

    __test__ = False  # not one of pytest's

    tests: tuple[Test, ...]
    """At least one."""
    entry_point: str
    """The function, such as ``f`` or ``Solution().f``; empty where the program reads stdin."""
    prelude: str = ""
    """Code that the tests need: helpers that the prompt gives, set-up code."""
    classes: tuple[str, ...] = ()
    """Classes that the prelude defines; their objects can be passed and returned."""

    @property
    def kind(self) -> Literal["call", "stdin", "assert"]:
        """How the solution is tested."""
        kinds: dict[type, Literal["call", "stdin", "assert"]]
        kinds = {CallTest: "call", StdinTest: "stdin", AssertTest: "assert"}
        return kinds[type(self.tests[0])]


def read_tests(task: Mapping[str, Any]) -> TestSuite:
    """Return the tests of a task.

    Raises:
        TaskError: There are none, there are too many, or one cannot be read; it names the field.
    """
    if isinstance(task.get("test"), str) and task["test"].strip():
        suite = _check_suite(task)
    elif task.get("test_list") is not None:
        suite = _assertion_suite(task)
    elif "inputs" in task or "outputs" in task:
        suite = _input_output_suite(task)
    else:
        suite = _case_suite(task)
    if not suite.tests:
        raise TaskError("the task has no tests: a program that nothing tests is not right")
    if len(suite.tests) > MAX_TESTS:
        raise TaskError(f"the task has {len(suite.tests)} tests, more than {MAX_TESTS}")
    return suite


# check(candidate)


def _check_suite(task: Mapping[str, Any]) -> TestSuite:
    entry = _entry_point(task)
    prelude = _joined(task, ("prompt", "test_setup_code", "test_imports"))
    test = _text(task["test"], "test")
    if "check" in _names_defined(test, "test"):
        test += f"\ncheck({entry if '(' not in entry else '__candidate'})\n"
    elif functions := _test_functions(test):
        test += "".join(f"\n{name}()" for name in functions) + "\n"
    _check_it_runs(test, "test")
    proxies = {"__candidate" if "(" in entry else entry: entry}
    return _suite([AssertTest(test, proxies)], entry, prelude)


def _assertion_suite(task: Mapping[str, Any]) -> TestSuite:
    codes = task["test_list"]
    if isinstance(codes, str) or not isinstance(codes, Sequence):
        raise TaskError(f"'test_list' must be a list of assertions, got {excerpt(codes)}")
    prelude = _joined(task, ("test_setup_code", "test_imports"))
    known = _names_defined(prelude, "test_setup_code")
    asked = _entry_point(task) if task.get("entry_point") is not None else ""
    tests: list[AssertTest] = []
    for number, code in enumerate(codes):
        where = f"test_list[{number}]"
        modules = _modules_used(_text(code, where), where) - known
        _check_it_runs(code, where)
        used = _names_used(code, where) - known - modules
        # A function may have the name of a built-in one, but then it has to be said.
        names = {name for name in used if name == asked or name not in dir(builtins)}
        imports = "".join(f"import {name}\n" for name in sorted(modules))
        tests.append(AssertTest(imports + code, {name: name for name in sorted(names)}))
    first = next((name for test in tests for name in test.proxies), "")
    if tests and not first:
        raise TaskError("no test in 'test_list' uses the solution; name it in 'entry_point'")
    return _suite(tests, asked or first, prelude)


def _suite(tests: Sequence[Test], entry: str, prelude: str) -> TestSuite:
    tree = _parsed(prelude, "prompt")
    # Objects of the class that is asked for stay where the solution is.
    asked = re.split(r"[.(]", entry)[0]
    defined = (node.name for node in tree.body if isinstance(node, ast.ClassDef))
    classes = tuple(name for name in defined if name != asked)
    return TestSuite(tuple(tests), entry, prelude, classes)


# Inputs and outputs


def _input_output_suite(task: Mapping[str, Any]) -> TestSuite:
    inputs, outputs = task.get("inputs"), task.get("outputs")
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise TaskError(f"'inputs' and 'outputs' must be lists, got {excerpt(inputs)}")
    if len(inputs) != len(outputs):
        raise TaskError(f"{len(inputs)} inputs have {len(outputs)} outputs; each needs one")
    name = task.get("fn_name")
    if name is None:
        pairs = zip(inputs, outputs, strict=True)
        tests = [StdinTest(_lines(i, "inputs"), _lines(o, "outputs")) for i, o in pairs]
        return TestSuite(tuple(tests), "")
    is_wrapped = all(isinstance(output, list) and len(output) == 1 for output in outputs)
    calls: list[Test] = []
    for arguments, expected in zip(inputs, outputs, strict=True):
        if not isinstance(arguments, list):
            raise TaskError(f"the input of a call must be a list, got {excerpt(arguments)}")
        calls.append(_call_test(arguments, expected, is_wrapped=is_wrapped))
    return TestSuite(tuple(calls), _identifier(name, "fn_name"))


def _case_suite(task: Mapping[str, Any]) -> TestSuite:
    field = next((name for name in TESTS_FIELDS if task.get(name) is not None), None)
    if field is None:
        raise TaskError(
            f"the task has no tests: it needs one of 'test', 'test_list', 'inputs', "
            f"{', '.join(map(repr, TESTS_FIELDS))}, got the fields {sorted(map(str, task))}"
        )
    cases = _json(task[field], field)
    if isinstance(cases, dict):
        return _input_output_suite({**task, **cases})
    if not isinstance(cases, list):
        raise TaskError(f"{field!r} must be a list of tests, got {excerpt(cases)}")
    metadata = _json(task.get("metadata") or {}, "metadata")
    name = task.get("fn_name") or task.get("entry_point")
    name = name or (metadata.get("func_name") if isinstance(metadata, dict) else None)
    tests = [_case(case, f"{field}[{number}]", name) for number, case in enumerate(cases)]
    if len({type(test) for test in tests}) > 1:
        raise TaskError(f"{field!r} mixes calls with programs that read stdin")
    is_call = bool(tests) and isinstance(tests[0], CallTest)
    return TestSuite(tuple(tests), _identifier(name, "fn_name") if is_call else "")


def _case(case: Any, where: str, name: Any) -> Test:
    if not isinstance(case, Mapping) or "input" not in case or "output" not in case:
        raise TaskError(f"{where} needs 'input' and 'output', got {excerpt(case)}")
    kind = case.get("testtype") or ("functional" if name else "stdin")
    if kind == "stdin":
        return StdinTest(_lines(case["input"], where), _lines(case["output"], where))
    if kind != "functional":
        raise TaskError(f"{where}: testtype must be stdin or functional, got {excerpt(kind)}")
    arguments, expected = case["input"], case["output"]
    if isinstance(arguments, str):
        # One argument a line, each in JSON.
        arguments = [_json(line, where) for line in arguments.split("\n") if line.strip()]
        expected = _json(expected, where)
    if not isinstance(arguments, list):
        raise TaskError(f"{where}: the input of a call must be a list, got {excerpt(arguments)}")
    return _call_test(arguments, expected)


def _call_test(arguments: list[Any], expected: Any, *, is_wrapped: bool = False) -> CallTest:
    try:
        return CallTest(values.dumps([arguments, {}]), expected, is_wrapped=is_wrapped)
    except values.CrossingError as error:
        raise TaskError(f"a test cannot be used: {error}") from None


# Reading


def _entry_point(task: Mapping[str, Any]) -> str:
    entry = task.get("entry_point")
    if not isinstance(entry, str) or not entry.strip():
        raise TaskError(f"'entry_point' must name the function, got {excerpt(entry)}")
    for part in entry.replace("()", "").split("."):
        _identifier(part, "entry_point")
    return entry.strip()


def _identifier(name: Any, field: str) -> str:
    if not isinstance(name, str) or not name.strip().isidentifier():
        raise TaskError(f"{field!r} must name a function, got {excerpt(name)}")
    return name.strip()


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise TaskError(f"{where} must be text, got {excerpt(value)}")
    if len(value) > MAX_TEST_CHARACTERS:
        raise TaskError(f"{where} is longer than {MAX_TEST_CHARACTERS} characters")
    return value


def _lines(value: Any, where: str) -> str:
    """Return text, or lines as text: both are used for what a program reads."""
    is_lines = isinstance(value, list) and all(isinstance(line, str) for line in value)
    return _text("\n".join(value) if is_lines else value, where)


def _json(value: Any, where: str) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(_text(value, where))
    except (ValueError, RecursionError) as error:
        raise TaskError(f"{where} is no JSON ({error}): {excerpt(value)}") from None


def _joined(task: Mapping[str, Any], fields: Sequence[str]) -> str:
    parts = []
    for field in fields:
        value = task.get(field)
        if value:
            lines = value if isinstance(value, list) else [value]
            parts += [_text(line, field) for line in lines]
    return "\n".join(parts)


def _parsed(code: str, where: str) -> ast.Module:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise TaskError(f"{where!r} is no Python: {error}: {excerpt(code)}") from None


def _names_defined(code: str, where: str) -> set[str]:
    _parsed(code, where)
    table = symtable.symtable(code, where, "exec")
    return {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_assigned() or symbol.is_imported()
    }


def _names_used(code: str, where: str) -> set[str]:
    """Return the names that code takes from outside of it."""
    _parsed(code, where)
    top = symtable.symtable(code, where, "exec")
    used = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    tables = list(top.get_children())
    while tables:
        table = tables.pop()
        tables += table.get_children()
        used |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    return used - _names_defined(code, where)


def _test_functions(code: str) -> list[str]:
    """Return the functions that pytest would run: named ``test...``, without parameters."""
    functions = [n for n in _parsed(code, "test").body if isinstance(n, ast.FunctionDef)]
    return [n.name for n in functions if n.name.startswith("test") and not ast.unparse(n.args)]


def _check_it_runs(code: str, where: str) -> None:
    """Raise :class:`TaskError` where code only defines: it would run to its end whatever comes."""
    defines = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    for node in _parsed(code, where).body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not isinstance(node, defines) and not is_text:
            return
    raise TaskError(
        f"{where!r} runs nothing: it needs assertions, a function check(candidate), or functions "
        f"test_...() without parameters, got {excerpt(code)}"
    )


def _modules_used(code: str, where: str) -> set[str]:
    """Return the names of standard modules that code uses as such, without importing them.

    It must not find under them what the solution has put there.
    """
    tree = _parsed(code, where)
    owners = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    others = {node.id for node in names if id(node) not in owners}
    others |= _names_defined(code, where)
    return {node.id for node in names if node.id in sys.stdlib_module_names} - others
