r"""Find the answer in a model's response. Linear in the length of the text, whatever the text."""

import re

_PYTHON_NAMES = ("", "python", "py", "python3")
_PROGRAM_LINE = re.compile(r"^(?:def|class|import|from|async def)[ \t]", re.MULTILINE)
_FENCE = re.compile(r"```[ \t]*([\w+#.-]*)[^`]*")
_BRACE_TOKENS = re.compile(r"\\boxed\s*\{|\\.|[{}]", re.DOTALL)


def strip_thoughts(response: str) -> str:
    """Return the part of a response that is not thought.

    That is the text after the last ``</think>``; a ``<think>`` that is still open there, and what
    follows it, are dropped, because an unfinished thought is no answer.
    """
    answer_part = response.rpartition("</think>")[2]
    return answer_part.partition("<think>")[0]


def last_boxed(text: str) -> str | None:
    r"""Return the content of the last complete ``\boxed{...}``, or None where there is none.

    Braces are matched, and ``\{`` and ``\}`` do not count. Of nested boxes the outermost is taken.
    """
    if text.count("{") == text.count("\\") == text.count("\\boxed{") == 1:
        # One box and nothing to match: what most actions are, and quickly read.
        content, closing, _ = text.partition("\\boxed{")[2].partition("}")
        return content if closing else None
    open_braces: list[int] = []
    last: tuple[int, int] | None = None
    for token in _BRACE_TOKENS.finditer(text):
        word = token.group()
        if word == "{":
            open_braces.append(-1)
        elif word.startswith("\\boxed"):
            open_braces.append(token.end())
        elif word == "}" and open_braces:
            start = open_braces.pop()
            if start >= 0:
                # An enclosing box closes later than an inner one: the last to close is outermost.
                last = (start, token.start())
    return None if last is None else text[slice(*last)]


def boxed_answer(response: str) -> str | None:
    r"""Return the last complete ``\boxed{...}`` outside of thoughts, or None."""
    return last_boxed(strip_thoughts(response))


def tag_content(response: str, tag: str) -> str | None:
    """Return the content of the last complete ``<tag>...</tag>`` outside of thoughts, or None.

    Spaces around the content are dropped. ``tag`` is the name without brackets, such as "calc".
    """
    text = strip_thoughts(response)
    opening, closing = f"<{tag}>", f"</{tag}>"
    start = text.rfind(opening, 0, max(text.rfind(closing), 0))
    if start < 0:
        return None
    return text[start + len(opening) :].partition(closing)[0].strip()


def code_block(response: str) -> str | None:
    """Return the program in a response: its last fenced block of Python outside of thoughts.

    Blocks that name another language do not count. A response without any fence is itself the
    program where it has a line that starts with ``def``, ``class``, ``import`` or ``from``.
    """
    text = strip_thoughts(response)
    blocks, language, lines = [], None, []
    for line in text.replace("\r\n", "\n").split("\n"):
        fence = _FENCE.fullmatch(line.strip())
        if fence is None:
            lines.append(line)
        elif language is None or fence.group(1):
            language, lines = fence.group(1).lower(), []
        else:
            if language in _PYTHON_NAMES:
                blocks.append("\n".join([*lines, ""]))
            language = None
    if blocks:
        return blocks[-1]
    is_program = "```" not in text and _PROGRAM_LINE.search(text)
    return text if is_program else None
