"""The command line of a corpus: its own flags, made from the options, and those for Beam."""

import argparse
import textwrap
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from pipelines.corpus.options import Options
from shards.command import Parser
from shards.flags import add_flags, options_of

OptionsType = TypeVar("OptionsType", bound=Options)


def parse(
    options_class: type[OptionsType],
    argv: Sequence[str],
    *,
    program: str,
    about: str,
    defaults: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[OptionsType, list[str]]:
    """Return the options of a command line, and the words that are none of its flags.

    Those are for Beam (`pipelines.engine.flags.beam_flags`); `--` and what follows come last.

    Args:
        options_class: The options of the corpus.
        argv: The command line.
        program: Its name.
        about: What `--help` says it does.
        defaults: By field, where they differ from those of the class.

    Raises:
        UserError: A value is invalid.
    """
    end = argv.index("--") if "--" in argv else len(argv)
    parser = Parser(
        prog=f"python -m {program}",
        description=textwrap.dedent(about),
        formatter_class=_Help,
        argument_default=argparse.SUPPRESS,
        epilog="Flags of Apache Beam (--runner, --flink_master, ...) go to Beam; what follows "
        "-- goes to the runner word for word.",
    )
    add_flags(parser, options_class)
    known, rest = parser.parse_known_args(list(argv[:end]))
    values = {**defaults, **options_of(options_class, vars(known))}
    return options_class(**values), [*rest, *argv[end:]]


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=100)
