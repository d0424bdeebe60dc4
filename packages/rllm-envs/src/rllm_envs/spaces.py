"""``UnicodeText``: any Unicode string up to a length, at the cost of a few bytes.

``gymnasium.spaces.Text`` stores its alphabet in tables; over all of Unicode these cost seconds and
about 100 MiB per space. ``UnicodeText`` computes the same answers from code points instead and
stays an instance of ``Text``.

The module also registers ``UnicodeText`` with the batching functions of ``gymnasium.vector``. Its
shared-memory form reads through a live view, because ``AsyncVectorEnv`` decodes the observations
only once, when it is built, and copies that object at every step.
"""

import multiprocessing
from collections.abc import Iterator, Sequence, Set
from copy import deepcopy
from functools import lru_cache
from typing import Any

import numpy as np
from gymnasium.spaces import Space, Text, Tuple, flatten, unflatten
from gymnasium.vector.utils import (
    batch_differing_spaces,
    create_empty_array,
    create_shared_memory,
    read_from_shared_memory,
    write_to_shared_memory,
)

from rllm_envs.errors import EnvArgumentError

NUM_CODE_POINTS = 0x110000
MAX_SHARED_LENGTH = 65_536
_PRINTABLE = np.array([chr(code) for code in range(32, 127)])


class _UnicodeSet(Set[str]):
    """The set of all one-character strings, without storing them."""

    def __contains__(self, value: object) -> bool:
        return isinstance(value, str) and len(value) == 1

    def __iter__(self) -> Iterator[str]:
        return map(chr, range(NUM_CODE_POINTS))

    def __len__(self) -> int:
        return NUM_CODE_POINTS

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _UnicodeSet)

    def __hash__(self) -> int:
        return hash(_UnicodeSet)


class _UnicodeList(Sequence[str]):
    """All one-character strings in code point order, without storing them."""

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(map(chr, range(NUM_CODE_POINTS)[index]))
        return chr(range(NUM_CODE_POINTS)[index])

    def __len__(self) -> int:
        return NUM_CODE_POINTS


_UNICODE_SET = _UnicodeSet()
_UNICODE_LIST = _UnicodeList()


@lru_cache(maxsize=1)
def _all_characters() -> str:
    return "".join(map(chr, range(NUM_CODE_POINTS)))


class UnicodeText(Text):
    """The space of all strings of ``min_length`` to ``max_length`` characters.

    Args:
        max_length: Greatest number of characters, inclusive.
        min_length: Least number of characters, inclusive.
        seed: Seed of ``sample``.
        sample_length: Greatest length of a sampled string; samples are printable ASCII and short,
            so that random policies are cheap.

    Raises:
        EnvArgumentError: The lengths are negative or out of order.
    """

    def __init__(
        self,
        max_length: int = MAX_SHARED_LENGTH,
        *,
        min_length: int = 0,
        seed: int | np.random.Generator | None = None,
        sample_length: int = 64,
    ) -> None:
        if not 0 <= min_length <= max_length:
            raise EnvArgumentError(
                f"UnicodeText needs 0 <= min_length <= max_length, got min_length={min_length} "
                f"and max_length={max_length}"
            )
        # Text.__init__ builds the tables that this class exists to avoid.
        Space.__init__(self, dtype=str, seed=seed)
        self.min_length = int(min_length)
        self.max_length = int(max_length)
        self.sample_length = max(int(min_length), min(int(sample_length), int(max_length)))

    @property
    def character_set(self) -> Any:
        """All one-character strings, as a virtual set."""
        return _UNICODE_SET

    @property
    def character_list(self) -> Any:
        """All one-character strings in code point order, as a virtual sequence."""
        return _UNICODE_LIST

    @property
    def characters(self) -> str:
        """One string of all characters; 4 MB, built at first use."""
        return _all_characters()

    def character_index(self, char: str) -> np.int32:
        """Return the code point of a one-character string."""
        return np.int32(ord(char))

    def contains(self, x: Any) -> bool:
        """Return whether ``x`` is a string of an allowed length."""
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return a random printable string, or a random one of the strings in ``mask``.

        Args:
            mask: A tuple or list of legal strings, one of which is returned; or Gymnasium's pair
                ``(length, None)``, which fixes the length.
            probability: Gymnasium's pair ``(length, None)``; it fixes the length.

        Raises:
            EnvArgumentError: The mask weighs single characters, which this space cannot list.
        """
        chosen = mask if mask is not None else probability
        length = None
        if isinstance(chosen, tuple | list) and chosen and all(isinstance(s, str) for s in chosen):
            return str(chosen[int(self.np_random.integers(len(chosen)))])
        if chosen is not None:
            length = self._length_of(chosen)
        if length is None:
            length = int(self.np_random.integers(self.min_length, self.sample_length + 1))
        return "".join(self.np_random.choice(_PRINTABLE, size=length))

    def _length_of(self, pair: Any) -> int | None:
        if not (isinstance(pair, tuple) and len(pair) == 2 and pair[1] is None):
            raise EnvArgumentError(
                "UnicodeText.sample takes a mask of legal strings, such as ('[0]', '[4]'), "
                f"or (length, None); got {pair!r:.80}"
            )
        length = pair[0]
        if length is not None and not self.min_length <= length <= self.max_length:
            raise EnvArgumentError(
                f"length must be in [{self.min_length}, {self.max_length}], got {length}"
            )
        return None if length is None else int(length)

    def __repr__(self) -> str:
        return f"UnicodeText({self.min_length}, {self.max_length})"

    def __eq__(self, other: Any) -> bool:
        return (
            isinstance(other, UnicodeText)
            and self.min_length == other.min_length
            and self.max_length == other.max_length
        )

    __hash__ = None  # type: ignore[assignment]  # spaces are mutable: their generator moves on


class SharedTexts(Sequence[str]):
    """A batch of strings that lives in shared memory; each access reads the present content.

    Row ``i`` of ``cells`` holds the length of text ``i`` and then its code points. A deep copy is
    an ordinary tuple of strings.
    """

    def __init__(self, cells: np.ndarray) -> None:
        self._cells = cells

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self)[index]
        row = self._cells[index]
        return row[1 : 1 + row[0]].tobytes().decode("utf-32-le", "surrogatepass")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[str, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        return f"SharedTexts{tuple(self)!r}"


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<i4")


@create_shared_memory.register(UnicodeText)
def _create_shared_texts(space: UnicodeText, n: int = 1, ctx: Any = multiprocessing) -> Any:
    if space.max_length > MAX_SHARED_LENGTH:
        # AsyncVectorEnv shows this class of error together with the remedy.
        raise TypeError(
            f"{space} needs {4 * (space.max_length + 1)} bytes of shared memory per environment; "
            f"at most max_length={MAX_SHARED_LENGTH} is shared. Pass shared_memory=False."
        )
    return ctx.Array("i", n * (space.max_length + 1))


@read_from_shared_memory.register(UnicodeText)
def _read_shared_texts(space: UnicodeText, shared_memory: Any, n: int = 1) -> Any:
    cells = np.frombuffer(shared_memory.get_obj(), dtype=np.int32)
    return SharedTexts(cells.reshape(n, space.max_length + 1))


@write_to_shared_memory.register(UnicodeText)
def _write_shared_text(space: UnicodeText, index: int, value: str, shared_memory: Any) -> Any:
    codes = _code_points(value)
    if len(codes) > space.max_length:
        raise ValueError(
            f"an observation of {len(codes)} characters does not fit {space}; declare a greater "
            "max_length"
        )
    cells = np.frombuffer(shared_memory.get_obj(), dtype=np.int32)
    start = index * (space.max_length + 1)
    cells[start + 1 : start + 1 + len(codes)] = codes
    cells[start] = len(codes)


@create_empty_array.register(UnicodeText)
def _create_empty_texts(space: UnicodeText, n: int = 1, fn: Any = np.zeros) -> tuple[str, ...]:
    return (" " * space.min_length,) * n


@batch_differing_spaces.register(UnicodeText)
def _batch_differing_texts(spaces: Sequence[UnicodeText]) -> Tuple:
    return Tuple([deepcopy(space) for space in spaces], seed=deepcopy(spaces[0].np_random))


@flatten.register(UnicodeText)
def _flatten_text(space: UnicodeText, x: str) -> np.ndarray:
    codes = np.full(space.max_length, NUM_CODE_POINTS, dtype=np.int32)
    codes[: len(x)] = _code_points(x)
    return codes


@unflatten.register(UnicodeText)
def _unflatten_text(space: UnicodeText, x: np.ndarray) -> str:
    codes = np.asarray(x, dtype="<i4")
    return codes[codes < NUM_CODE_POINTS].tobytes().decode("utf-32-le", "surrogatepass")
