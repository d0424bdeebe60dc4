"""Reward function for multiple-choice questions."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.grading.text_match import normalize
from rllm_envs.parsing import last_boxed, strip_thoughts
from rllm_envs.rewards import RewardOutput

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MAX_CHOICES = len(LETTERS)

_MAX_RESPONSE = 100_000
_TEX_STYLE = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|rm|bf)\b\s*")
_ORNAMENTS = " \t\r\n*_`\"'${}"
_TAGGED = re.compile(r"<answer>([^<]*)</answer>", re.IGNORECASE)
_ANNOUNCEMENT = re.compile(
    r"\b(?:answer|option|choice)\s*(?:is\b|:)\**\s*(?:option\b|choice\b)?", re.IGNORECASE
)
_LABEL = re.compile(
    r"(?:(?i:option|choice)\s+)?[(\[]?([A-Za-z])(?:[)\]][.:]?|[.:,])?(?:\s+(.*))?", re.DOTALL
)
_LABEL_WITH_MARK = re.compile(r"[(\[]?[A-Za-z](?:[)\]]|[.:,])")
_REASON = re.compile(r"(?:because|since|as|for|which)\b", re.IGNORECASE)


def mcq_reward_fn(task_info: Mapping[str, Any], action: str) -> RewardOutput:
    r"""Reward the choice of an answer: 1 for the right one, else 0.

    The task has ``choices``, a list of texts, and ``answer`` (or ``ground_truth``), the index of
    the right one from 0, or its letter. ``find_choice`` says how the answer is found.

    Returns:
        The reward with ``metadata`` of ``outcome`` ("correct", "wrong" or "no_answer"), ``answer``
        (a letter or None) and ``method`` (where it was found).

    Raises:
        TaskError: The task has no choices, or its answer is none of them.
    """
    choices = choices_of(task_info)
    right = right_choice(task_info, len(choices))
    found = find_choice(action, choices) if isinstance(action, str) else None
    if found is None:
        metadata = {"outcome": "no_answer", "answer": None, "method": ""}
        return RewardOutput(0.0, False, metadata)
    index, method = found
    outcome = "correct" if index == right else "wrong"
    metadata = {"outcome": outcome, "answer": LETTERS[index], "method": method}
    return RewardOutput(float(index == right), index == right, metadata)


def choices_of(task_info: Mapping[str, Any]) -> list[str]:
    """Return the choices of a task.

    Raises:
        TaskError: They are no list of 2 to 26 texts.
    """
    choices = task_info.get("choices")
    texts = list(choices) if isinstance(choices, list | tuple) else []
    is_full = all(isinstance(text, str) and text.strip() for text in texts)
    if not is_full or not 2 <= len(texts) <= MAX_CHOICES:
        raise TaskError(f"'choices' must be a list of 2 to 26 texts, got {excerpt(choices)}")
    return texts


def right_choice(task_info: Mapping[str, Any], count: int) -> int:
    """Return the index of the right one of ``count`` choices.

    Raises:
        TaskError: ``answer`` is neither an index nor a letter of a choice.
    """
    value = task_info.get("ground_truth", task_info.get("answer"))
    if isinstance(value, str) and len(value.strip()) == 1:
        value = LETTERS.find(value.strip().upper())
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
        raise TaskError(
            f"'answer' must be the index (0 to {count - 1}) or the letter of a choice, got "
            f"{excerpt(task_info.get('ground_truth', task_info.get('answer')))}"
        )
    return value


def find_choice(response: str, choices: Sequence[str]) -> tuple[int, str] | None:
    r"""Return the choice that a response makes, from 0, and how it was found; None without one.

    After the thoughts the first of these decides: the last ``\boxed{}``, the last
    ``<answer>...</answer>``, the last announcement ("the answer is ..."), the last line. Each may
    hold a letter (``B``, ``(b)``, ``B.``), a letter with its choice (``B) Paris``), or a choice in
    full. Two letters, a letter with another's choice and a letter inside of a sentence are no
    choice: "A" is a word, too.

    Returns:
        The index, and "boxed", "tagged", "announced" or "last_line".
    """
    text = strip_thoughts(response[-_MAX_RESPONSE:])
    boxed = last_boxed(text)
    if boxed is not None:
        return _with_method(_read(boxed, choices), "boxed")
    tagged = _TAGGED.findall(text)
    if tagged:
        return _with_method(_read(tagged[-1], choices), "tagged")
    announced = list(_ANNOUNCEMENT.finditer(text))
    if announced:
        start = announced[-1].end()
        end = text.find("\n", start)
        rest = text[start : end if end >= 0 else None]
        return _with_method(_read_announced(rest, choices), "announced")
    lines = [line for line in text.splitlines() if line.strip(_ORNAMENTS)]
    return _with_method(_read(lines[-1], choices, "upper"), "last_line") if lines else None


def _with_method(index: int | None, method: str) -> tuple[int, str] | None:
    return None if index is None else (index, method)


def _read(text: str, choices: Sequence[str], case: str = "any") -> int | None:
    """Return the choice that a text as a whole stands for."""
    bare = _TEX_STYLE.sub("", text).strip(_ORNAMENTS)
    if not bare:
        return None
    label = _LABEL.fullmatch(bare)
    if label is not None and (case == "any" or label.group(1).isupper()):
        index = LETTERS.find(label.group(1).upper())
        words = (label.group(2) or "").strip(_ORNAMENTS)
        if index < len(choices) and (not words or _same(words, choices[index])):
            return index
    return _index_of_text(bare, choices)


def _read_announced(rest: str, choices: Sequence[str]) -> int | None:
    """Return the choice at the start of what follows an announcement."""
    bare = rest.strip(_ORNAMENTS + ":")
    whole = _read(bare.rstrip("."), choices, "upper")
    if whole is not None:
        return whole
    label = _LABEL.match(bare)
    if label is None or not label.group(1).isupper():
        return None
    index = LETTERS.find(label.group(1))
    words = (label.group(2) or "").strip(_ORNAMENTS)
    other = _index_of_text(words.rstrip("."), choices)
    if index >= len(choices) or (other is not None and other != index):
        return None
    is_marked = _LABEL_WITH_MARK.match(bare) is not None
    is_word = label.group(1) in "AI" and not is_marked and not _REASON.match(words)
    names_another = re.search(r"\b(?:or|and)\s+\(?[A-Z]\b", words[:20]) is not None
    return None if is_word or names_another or not _ends(bare, label) else index


def _ends(bare: str, label: re.Match[str]) -> bool:
    """Return whether a letter is a word of its own: "Dogs" is not choice D."""
    after = bare[label.end(1) : label.end(1) + 1]
    return not (after.isalnum() or after in "'-_")


def _index_of_text(text: str, choices: Sequence[str]) -> int | None:
    """Return the one choice whose text this is; None where none is, or several are."""
    same = [index for index, choice in enumerate(choices) if _same(text, choice)]
    return same[0] if len(same) == 1 else None


def _same(text: str, choice: str) -> bool:
    if text.strip() == choice.strip():
        return True
    # Punctuation is what tells numbers and expressions apart: "-3", "3.5" and "x + 1".
    if re.fullmatch(r"[\w\s'-]*[^\W\d][\w\s'.,-]*", choice) is None:
        return "".join(text.split()).casefold() == "".join(choice.split()).casefold()
    return normalize(text) == normalize(choice)
