"""The command line of a run: our flags, made from the options, and those that go to Beam."""

import argparse
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields
from types import MappingProxyType
from typing import Any, TypeVar

from pipelines.corpus.options import Options
from shards.command import Parser

OptionsType = TypeVar("OptionsType", bound=Options)


def parse(
    kind: type[OptionsType],
    argv: Sequence[str],
    *,
    program: str,
    about: str,
    defaults: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[OptionsType, list[str]]:
    """Return the options that the flags give, and the words that are no flags of ours.

    Those are meant for Beam (`pipelines.engine.cluster.beam_flags`); `--` and what follows it come
    last.

    Args:
        kind: The options.
        argv: The command line.
        program: Its name.
        about: What `--help` says it does.
        defaults: Of fields whose default is another one here.

    Raises:
        UserError: A value does not fit.
    """
    end = argv.index("--") if "--" in argv else len(argv)
    parser = Parser(
        prog=f"python -m {program}",
        description=textwrap.dedent(about),
        formatter_class=_Help,
        argument_default=argparse.SUPPRESS,
        epilog="Flags of Apache Beam (--runner, --flink_master, ...) go to Beam; what stands "
        "behind -- goes to the runner word for word.",
    )
    for each in fields(kind):
        _add_flag(parser, each)
    known, rest = parser.parse_known_args(list(argv[:end]))
    values = vars(known)
    for each in fields(kind):
        if isinstance(values.get(each.name), list):
            values[each.name] = tuple(values[each.name])
    return kind(**{**defaults, **values}), [*rest, *argv[end:]]


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=100)


def _add_flag(parser: argparse.ArgumentParser, each: "Field[Any]") -> None:
    text = each.metadata["help"]
    if isinstance(each.default, int | float | str | tuple) and each.default:
        shown = ",".join(each.default) if isinstance(each.default, tuple) else str(each.default)
        text += f" Default: {shown!r}." if shown.isspace() else f" Default: {shown}."
    parser.add_argument(f"--{each.name.replace('_', '-')}", help=text, **each.metadata["flag"])
