"""Options and operands of a command, as POSIX utilities read them."""

from dataclasses import dataclass, field

from rllm_envs.tool_use.shell.files import ShellError


@dataclass(slots=True)
class Options:
    """What a command was called with."""

    flags: set[str] = field(default_factory=set)
    """Letters of the options without a value."""
    values: dict[str, str] = field(default_factory=dict)
    """Values of the options that take one, by letter."""
    operands: list[str] = field(default_factory=list)
    """What is left, in order."""

    def number(self, letter: str, default: int) -> int:
        """Return the value of an option as a number of at most six digits.

        Raises:
            ShellError: It is something else.
        """
        value = self.values.get(letter)
        if value is None:
            return default
        if not (value.isascii() and value.isdigit() and len(value) <= 6):
            raise ShellError(f"invalid number '{value[:40]}'")
        return int(value)


def read_options(arguments: list[str], flags: str, valued: str = "") -> Options:
    """Return the options of a command; options and operands may be mixed.

    Args:
        arguments: The words after the name of the command.
        flags: Letters of options without a value.
        valued: Letters of options with a value, which may be joined or be the next word.

    Raises:
        ShellError: An option is not known, or its value is missing.
    """
    options = Options()
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            options.operands += rest
            break
        if not word.startswith("-") or word == "-":
            options.operands.append(word)
            continue
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter in valued:
                if not letters and not rest:
                    raise ShellError(f"option -{letter} needs a value")
                options.values[letter] = letters or rest.pop(0)
                letters = ""
            elif letter in flags:
                options.flags.add(letter)
            else:
                known = " ".join(f"-{known}" for known in flags + valued) or "none"
                raise ShellError(f"unknown option {word[:40]} (known: {known})")
    return options
