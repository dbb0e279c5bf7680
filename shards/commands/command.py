"""The commands of all three packages: options, parser, exit codes and log lines.

A command is a dataclass with a method `run`; each of its fields is a flag (`flags.option`).
"""

import argparse
import inspect
import io
import logging
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, Self

from shards.commands.extras import missing_extra
from shards.commands.flags import (
    REST,
    WORD,
    MutuallyExclusive,
    default_text,
    flag_of,
    help_of,
    options_of,
)
from shards.commands.output import MessageFormatter, print_message
from shards.commands.spelling import did_you_mean, expected
from shards.commands.table import called_program
from shards.errors import UserError
from shards.memory import is_out_of_memory

EXIT_REFUSED = 2
"""The exit code after an error that the user can fix."""

EXIT_INTERRUPTED = 130
"""The exit code after Ctrl-C, as in shells: 128 + SIGINT."""

EXIT_BROKEN_PIPE = 141
"""The exit code when nobody reads the output any more (`| head`), as in shells: 128 + SIGPIPE."""


_PYTHON = "python -m "
_FLAG = re.compile(r"--?[^\W\d][^\s=]*")
"""A word that looks like a flag, whether there is such a flag or not."""
_LIKENESS = 0.7
"""The minimum similarity, from 0 to 1, at which a known flag is suggested for an unknown flag."""
_MEANT = {int: "a whole number", float: "a number, as in 3, 0.5 or 1e-4"}
"""The description of a valid value of each type; argparse itself would only name the type."""


class Help(argparse.RawDescriptionHelpFormatter):
    """Formats `--help` for the width of the terminal, up to 100 columns."""

    def __init__(self, prog: str, **settings: Any) -> None:
        width = min(shutil.get_terminal_size().columns - 2, 100)
        super().__init__(prog, **{"max_help_position": 28, "width": width, **settings})


class Parser(argparse.ArgumentParser):
    """A parser whose errors are UserErrors, and whose flags cannot be abbreviated.

    It reports all unknown flags at once, before any other mistake.
    """

    def __init__(
        self,
        *,
        foreign: Mapping[str, str] = MappingProxyType({}),
        leading_flag: str = "",
        **settings: Any,
    ) -> None:
        """Make a parser.

        Args:
            foreign: Flags of other projects, each with our flag that means the same.
            leading_flag: The flag that receives the words before the first flag; "" for none.
            settings: Further arguments of argparse.ArgumentParser.
        """
        settings["prog"] = called_program(settings.get("prog", ""))
        super().__init__(allow_abbrev=False, **{"formatter_class": Help, **settings})
        self._groups: dict[str, argparse._ArgumentGroup] = {}
        self._exclusive: dict[MutuallyExclusive, argparse._MutuallyExclusiveGroup] = {}
        self._foreign = foreign
        self._leading_flag = leading_flag

    def group(self, title: str) -> "argparse._ActionsContainer":
        """Return the group of flags below a title of `--help`; if "", return the parser."""
        if not title:
            return self
        if title not in self._groups:
            self._groups[title] = self.add_argument_group(title)
        return self._groups[title]

    def exclusive_group(
        self, exclusive: MutuallyExclusive, title: str
    ) -> "argparse._ActionsContainer":
        """Return a group of mutually exclusive flags within the group of a title."""
        if exclusive not in self._exclusive:
            group = self.group(title).add_mutually_exclusive_group(required=exclusive.required)
            self._exclusive[exclusive] = group
        return self._exclusive[exclusive]

    def parse_known_args(  # type: ignore[override]  # one signature for both overloads
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse words after checking that they are UTF-8, as files and Arrow require."""
        words = sys.argv[1:] if args is None else [*args]
        for word in words:
            if any("\ud800" <= character <= "\udfff" for character in word):
                self.error(f"the argument {word} is not UTF-8: rename the file or folder")
        if self._leading_flag and words and not words[0].startswith("-"):
            words.insert(0, self._leading_flag)
        return super().parse_known_args(words, namespace)

    def parse_args(  # type: ignore[override]  # as above
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse a whole command line."""
        return self._parsed(self.parse_known_args, args, namespace)

    def parse_intermixed_args(  # type: ignore[override]  # as above
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse a whole command line whose flags may be mixed with its other words."""
        return self._parsed(self.parse_known_intermixed_args, args, namespace)

    def _parsed(
        self,
        parse: Callable[..., tuple[argparse.Namespace, list[str]]],
        args: Sequence[str] | None,
        namespace: argparse.Namespace | None,
    ) -> argparse.Namespace:
        words = sys.argv[1:] if args is None else [*args]
        self.refuse(self.unknown_flags(words))
        parsed, rest = parse(words, namespace)
        if rest:
            self.error(f"unexpected words: {' '.join(rest)}. Quote a value that has spaces")
        return parsed

    @property
    def flags(self) -> list[str]:
        """The flags that `--help` shows."""
        return [
            name
            for action in self._actions
            if action.help != argparse.SUPPRESS
            for name in action.option_strings
        ]

    def unknown_flags(self, words: Sequence[str]) -> list[str]:
        """Return, each once, the flags of a command line that the parser does not know."""
        end = words.index("--") if "--" in words else len(words)
        heads = (word.partition("=")[0] for word in words[:end])
        known = self._option_string_actions
        return list(dict.fromkeys(x for x in heads if _FLAG.fullmatch(x) and x not in known))

    def is_foreign(self, flag: str) -> bool:
        """Return whether a flag belongs to another project and has an equivalent here."""
        return flag.replace("_", "-") in self._foreign

    def refuse(self, flags: Sequence[str], *, others: Sequence[str] = (), more: str = "") -> None:
        """Raise an error that names the unknown flags with a hint for each, if there are any.

        Args:
            flags: The unknown flags as they were typed.
            others: Flags to suggest besides those of the parser.
            more: A sentence to add if there is no hint for one of the flags.

        Raises:
            UserError: There are unknown flags.
        """
        hints = {flag: self._hint(flag, others) for flag in flags}
        if not hints:
            return
        told = [f"{flag}: {hint}" if hint else flag for flag, hint in hints.items()]
        advice = self._advice if all(hints.values()) or not more else f"{more} {self._advice}"
        if len(told) > 1:
            raise UserError("\n  ".join(["unknown flags:", *told, advice]))
        stop = "" if told[0].endswith("?") else "."
        raise UserError(f"unknown flag {told[0]}{stop} {advice}")

    def error(self, message: str) -> NoReturn:
        """Raise a UserError that explains an invalid command line."""
        stop = "" if message.endswith((".", "?")) else "."
        if message.startswith("argument -"):
            message = message.removeprefix("argument ")
        raise UserError(f"{message}{stop} {self._advice}")

    @property
    def _advice(self) -> str:
        return f"{self.prog} --help lists every flag"

    def _hint(self, flag: str, others: Sequence[str]) -> str:
        """Return a hint for an unknown flag; "" if there is none."""
        plain = flag.replace("_", "-")
        return self._foreign.get(plain) or did_you_mean(
            flag, [*self.flags, *others], likeness=_LIKENESS
        )

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise an error if a value is not one of the choices."""
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        name = action.option_strings[-1] if action.option_strings else str(action.metavar)
        raise argparse.ArgumentError(None, f"{name} {value}: {expected(str(value), known)}")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Convert a word to the type of its flag; report an invalid word in a plain sentence."""
        meant = _MEANT.get(action.type)  # type: ignore[call-overload]  # a type or a function
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            if meant is None:
                raise
            raise argparse.ArgumentError(action, f"{arg_string!r} is not {meant}") from error


def add_flags(parser: Parser, options_class: type[Any]) -> None:
    """Add a flag for each field of a dataclass of options, below the titles that the fields name.

    A field that names no title is listed below the title of the previous field.
    """
    group = ""
    for option_field in fields(options_class):
        group = option_field.metadata["group"] or group
        if option_field.metadata["named"] != REST:
            text = help_of(option_field, options_class)
            add_flag(parser, option_field, group=group, text=text)


def add_flag(parser: Parser, option_field: Field[Any], *, group: str, text: str) -> None:
    """Add the flag or the word of a field, with its help, to a group of a parser."""
    about, name = option_field.metadata, option_field.name
    said = default_text(option_field)
    stop = "." if said and not text.endswith((".", ")")) else ""
    text = f"{text}{stop}{said}".replace("%", "%%")
    exclusive = about["exclusive"]
    place = parser.exclusive_group(exclusive, group) if exclusive else parser.group(group)
    if about["named"] == WORD:
        default = None if option_field.default is MISSING else option_field.default
        place.add_argument(name, help=text, default=default, **about["flag"])
    else:
        flag = about["named"] or flag_of(name)
        place.add_argument(flag, dest=name, help=text, **about["flag"])


@dataclass
class Invocation:
    """The texts that describe a started command in the messages about its end."""

    program: str
    """The name of the program, which begins every message."""
    stopped: str = "nothing was started"
    """The end of the line that is printed after Ctrl-C."""


def exit_code(invocation: Invocation, work: Callable[[], int | None]) -> int:
    """Do the work of a command and return its exit code.

    After an error that the user can fix, or a lack of memory, print one paragraph and return
    EXIT_REFUSED; after Ctrl-C, print one line and return EXIT_INTERRUPTED. EXIT_BROKEN_PIPE means
    that nobody reads the output any more and that the work may be unfinished.

    Args:
        invocation: The started command; the work may change it.
        work: A function that returns an exit code, or None for 0.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # escapes characters that its encoding lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = work()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print_message(f"{_short(invocation.program)}: stopped; {invocation.stopped}", start="\n")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Leave nothing for the interpreter to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except Exception as error:
        if not (message := _message(error, invocation.stopped)):
            raise
        print_message(f"{_short(invocation.program)}: {message}")
        return EXIT_REFUSED
    return code or 0


def _short(program: str) -> str:
    """Return the start of a program's messages, such as shards for `python -m shards inspect`."""
    program = called_program(program)
    is_python = program.startswith(_PYTHON)
    return program.removeprefix(_PYTHON).partition(" ")[0] if is_python else program


def _message(error: Exception, stopped: str) -> str | None:
    """Return the paragraph about an error; None if the user cannot fix the error."""
    if isinstance(error, UserError):
        return str(error)
    if told := missing_extra(error):
        return told
    if isinstance(error, PermissionError):
        path = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else error
        does = "list" if os.path.isdir(str(path)) else "open"  # noqa: PTH112 - of any text
        return (
            f"Cannot {does} {path}: permission denied. Check its permissions and those of the "
            f"folders above it; {stopped}"
        )
    if not is_out_of_memory(error):
        return None
    reason = f" ({error})" if str(error) else ""
    return (
        f"there is not enough memory{reason}: use a machine with more, or raise the limit "
        f"(ulimit -v); {stopped}"
    )


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command, whose fields are its options and whose method `run` does the work.

    The first paragraph of a subclass's docstring is the description in its `--help`.
    """

    STOPPED: ClassVar[str] = "run the same command to continue"
    """The end of the line that is printed after Ctrl-C."""
    USAGE: ClassVar[str | None] = None
    """The usage line of `--help`; None if argparse makes it from all flags."""
    EPILOG: ClassVar[str | None] = None
    """The last lines of `--help`."""
    GROUPS: ClassVar[Sequence[str]] = ()
    """The titles that come first in `--help`, in this order."""
    FOREIGN: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The argument `foreign` of `Parser`."""
    LEADING_FLAG: ClassVar[str] = ""
    """The argument `leading_flag` of `Parser`."""

    def run(self) -> int | None:
        """Do the work and return an exit code, or None for 0."""
        raise NotImplementedError

    def leave(self, code: int) -> int:
        """Return the exit code; a subclass may instead end the process with this code."""
        return code

    @classmethod
    def parser(cls, program: str) -> Parser:
        """Return the parser of the command; `program` is the name that `--help` shows."""
        parser = Parser(
            prog=program,
            usage=cls.USAGE,
            description=inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0],
            epilog=cls.EPILOG,
            argument_default=argparse.SUPPRESS,
            foreign=cls.FOREIGN,
            leading_flag=cls.LEADING_FLAG,
        )
        for title in cls.GROUPS:
            parser.group(title)
        add_flags(parser, cls)
        return parser

    @classmethod
    def parse(cls, words: Sequence[str], program: str) -> Self:
        """Parse a command line and return the command with its options.

        Raises:
            UserError: A flag is unknown or missing, or a value is invalid.
        """
        return cls(**options_of(cls, vars(cls.parser(program).parse_args(words))))


def log_errors() -> None:
    """Show only errors in the log, with invisible characters replaced."""
    handler = logging.StreamHandler()
    handler.setFormatter(MessageFormatter())
    logging.basicConfig(handlers=[handler], level=logging.ERROR)


def log_plainly() -> None:
    """Show our log lines without prefixes; of the libraries' log lines, show only errors."""
    log_errors()
    for name, level in (
        ("corpusmill", logging.INFO),
        ("trainer", logging.INFO),
        ("pipelines", logging.WARNING),
    ):
        logging.getLogger(name).setLevel(level)
