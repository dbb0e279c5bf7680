"""The command line of a run: our flags, made from the options, and those that go to Beam."""

import argparse
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields
from types import MappingProxyType
from typing import Any, TypeVar

from pipelines.corpus.options import Options
from shards.errors import UserError
from shards.flags import Parser

OptionsType = TypeVar("OptionsType", bound=Options)


def parse(
    kind: type[OptionsType],
    argv: Sequence[str],
    *,
    program: str,
    about: str,
    defaults: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[OptionsType, list[str]]:
    """Return the options that the flags give, and the flags meant for Beam.

    Flags that Beam's Python SDK knows are handed on, and so is everything behind `--`, word for
    word.

    Args:
        kind: The options.
        argv: The command line.
        program: Its name.
        about: What `--help` says it does.
        defaults: Of fields whose default is another one here.

    Raises:
        UserError: A flag that neither knows, or a value that does not fit.
    """
    ours, runners = _partition(argv)
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
    known, rest = parser.parse_known_args(ours)
    beam = _beam_flags(rest)
    values = vars(known)
    for each in fields(kind):
        if isinstance(values.get(each.name), list):
            values[each.name] = tuple(values[each.name])
    return kind(**{**defaults, **values}), [*beam, *runners]


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=100)


def _partition(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    words = list(argv)
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def _add_flag(parser: argparse.ArgumentParser, each: "Field[Any]") -> None:
    text = each.metadata["help"]
    if isinstance(each.default, int | float | str | tuple) and each.default:
        shown = ",".join(each.default) if isinstance(each.default, tuple) else str(each.default)
        text += f" Default: {shown!r}." if shown.isspace() else f" Default: {shown}."
    parser.add_argument(f"--{each.name.replace('_', '-')}", help=text, **each.metadata["flag"])


def _beam_flags(rest: Sequence[str]) -> list[str]:
    """Return the flags unchanged if Beam knows them all."""
    from apache_beam.options.pipeline_options import PipelineOptions  # noqa: PLC0415 - a second to load

    parser = Parser(prog="beam", add_help=False)
    for kind in (PipelineOptions, *_subclasses(PipelineOptions)):
        if "_add_argparse_args" in vars(kind):
            kind._add_argparse_args(parser)
    unknown = parser.parse_known_args(list(rest))[1]
    if unknown:
        raise UserError(
            f"unknown flag {unknown[0]}: neither this command nor Beam's Python SDK has it. "
            "What only the runner knows goes behind --, as in: -- --checkpointing_interval=5000"
        )
    return list(rest)


def _subclasses(kind: Any) -> list[Any]:
    found = list(kind.__subclasses__())
    return found + [deeper for child in found for deeper in _subclasses(child)]
