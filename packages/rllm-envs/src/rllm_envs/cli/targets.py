"""``MODULE:ENV``: a person's own environment, found by module, file or id, and made."""

import contextlib
import importlib
import inspect
import io
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium

from rllm_envs.cli.arguments import choose_kind
from rllm_envs.core import TextEnv
from rllm_envs.errors import EnvArgumentError, RllmEnvsError, UnknownEnvError, excerpt
from rllm_envs.gym_env import GymEnv
from rllm_envs.multi_agent import make_aec, make_parallel

Make = Callable[..., Any]
"""Makes the environment; keyword arguments are added to those of the command."""


def find_target(target: str, kind: str | None, arguments: Mapping[str, Any]) -> Make:
    """Return how a target is made.

    Args:
        target: "module:Class", "module:function", "file.py:Class", "module:id" or a registered id.
        kind: Which environment an id means: "gymnasium", "aec" or "parallel"; None for the first.
        arguments: Arguments of the environment.

    Returns:
        A function of further keyword arguments.

    Raises:
        UnknownEnvError: There is no such module, name or id.
        EnvArgumentError: The target is an object, which takes no arguments.
    """
    place, _, name = target.rpartition(":")
    if not place:
        return _of_id(target, choose_kind(target, kind), arguments)
    module = _load(place)
    found = getattr(module, name, None)
    if found is None:
        if name not in gymnasium.registry:
            raise UnknownEnvError(_missing(module, name))
        return _of_id(name, "gymnasium", arguments)
    if not callable(found):
        raise UnknownEnvError(
            f"{target} is {excerpt(found)}; name a class, or a function that makes the environment"
        )
    return _calling(found, target, arguments)


def described(error: BaseException) -> str:
    """Return an error as one line, with the place in the person's own code where it was raised."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{place_of(error)}"


def place_of(error: BaseException) -> str:
    """Return file, line and function of the last frame outside of this package and of Gymnasium.

    The empty text where there is none, and for a syntax error, which tells its place itself.
    """
    if isinstance(error, SyntaxError):
        return ""
    ours = (str(Path(__file__).parents[1]), str(Path(gymnasium.__file__).parent))
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((*ours, "<frozen"))
        and Path(frame.filename).suffix == ".py"
    ]
    if not frames:
        return ""
    last = frames[-1]
    return f" ({Path(last.filename).name}, line {last.lineno}, in {last.name})"


def make_quietly(make: Make, target: str) -> Any:
    """Return the made environment.

    Raises:
        EnvArgumentError: Making it raises something; the message says what and where.
    """
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return make()
    except RllmEnvsError:
        raise
    except Exception as error:
        raise EnvArgumentError(f"making {target} raises {described(error)}") from error


def _load(place: str) -> ModuleType:
    path = Path(place)
    if path.suffix == ".py":
        if not path.is_file():
            raise UnknownEnvError(f"there is no file {place!r:.200}")
        # By its own name, so that an entry point that names the module is found too.
        sys.path.insert(0, str(path.resolve().parent))
        place = path.stem
    elif "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{place}.".startswith(f"{error.name}."):
            raise UnknownEnvError(
                f"there is no module {place!r:.200}; write MODULE:ENV from the folder that it is "
                "in, or path/to/file.py:ENV"
            ) from error
        raise UnknownEnvError(f"importing {place} raises {described(error)}") from error
    except Exception as error:
        raise UnknownEnvError(f"importing {place} raises {described(error)}") from error


def _missing(module: ModuleType, name: str) -> str:
    own = [
        key
        for key, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__
        if issubclass(value, TextEnv)
    ]
    there = f"it has {', '.join(own)}" if own else "it has no TextEnv"
    return f"module {module.__name__!r} has no {name!r:.80}, and no id is called so; {there}"


def _of_id(env_id: str, kind: str, arguments: Mapping[str, Any]) -> Make:
    if kind == "aec":
        return lambda **more: make_aec(env_id, **{**arguments, **more})
    if kind == "parallel":
        return lambda **more: make_parallel(env_id, **{**arguments, **more})
    return lambda **more: GymEnv(env_id, env_kwargs={**arguments, **more}).env


def _calling(creator: Make, target: str, arguments: Mapping[str, Any]) -> Make:
    try:
        parameters = inspect.signature(creator).parameters.values()
    except (TypeError, ValueError):
        parameters = ()
    names = [parameter.name for parameter in parameters]
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        for name in arguments:
            if name not in names:
                raise EnvArgumentError(
                    f"{target} has no argument {name!r}; it takes {', '.join(names) or 'none'}"
                )
    return lambda **more: creator(**{**arguments, **more})
