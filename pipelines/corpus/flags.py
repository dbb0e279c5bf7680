"""The command line of a corpus: its own flags, made from the options, and those for Beam."""

import argparse
import textwrap
from collections.abc import Sequence
from dataclasses import fields
from typing import TypeVar

from pipelines.corpus.old_spellings import OLD
from pipelines.corpus.options import GROUPS, Options
from pipelines.engine.flags import RUNNER, beam_names
from shards.command import Parser, add_flag, add_flags
from shards.flags import help_of, options_of
from shards.spelling import nearest

OptionsType = TypeVar("OptionsType", bound=Options)

_CERTAIN = 0.8
"""How much a flag without underscores is like one of ours if it cannot be one of Beam's."""


def parse(
    options_class: type[OptionsType],
    argv: Sequence[str],
    *,
    program: str,
    about: str,
) -> tuple[OptionsType, list[str]]:
    """Return the options of a command line, and the words that are none of its flags.

    Those are for Beam (`pipelines.engine.flags.beam_flags`); `--` and what follows come last.

    Args:
        options_class: The options of the corpus.
        argv: The command line.
        program: Its name.
        about: What `--help` says it does.

    Raises:
        UserError: A value is invalid, or neither the corpus nor Beam has a flag.
    """
    end = argv.index("--") if "--" in argv else len(argv)
    parser = _parser(options_class, program, about)
    _refuse_unknown(parser, argv[:end])
    known, rest = parser.parse_known_args(list(argv[:end]))
    return options_class(**options_of(options_class, vars(known))), [*rest, *argv[end:]]


def _parser(options_class: type[Options], program: str, about: str) -> Parser:
    """Return the parser of a corpus, whose own flags come first in `--help`."""
    parser = Parser(
        prog=f"python -m {program}",
        usage="%(prog)s --input PATH --tokenizer SPEC [--output DIR] [FLAG ...]",
        description=textwrap.dedent(about),
        argument_default=argparse.SUPPRESS,
        epilog="Flags of Apache Beam (--runner, --flink_master, ...) go to Beam;\n"
        "what follows -- goes to the runner word for word.",
        old=OLD,
    )
    shared = {option_field.name for option_field in fields(Options)}
    for option_field in fields(options_class):
        if option_field.name not in shared:
            own = option_field.metadata["group"] or f"of {program} alone"
            add_flag(parser, option_field, group=own, text=help_of(option_field, options_class))
    for title in GROUPS:
        parser.group(title)
    add_flags(parser, Options)
    return parser


def _refuse_unknown(parser: Parser, words: Sequence[str]) -> None:
    """Refuse flags that neither the corpus nor Beam has; Beam is loaded only if that is unsure."""
    strange = [flag for flag in parser.unknown_flags(words) if flag != RUNNER]
    if all(_is_certain(flag, parser) for flag in strange):
        parser.refuse(strange)
        return
    known = beam_names()
    parser.refuse(
        [flag for flag in strange if flag not in known],
        others=known,
        more="Beam's Python SDK does not have it either; what only the runner knows goes behind "
        "--, as in: -- --checkpointing_interval=5000.",
    )


def _is_certain(flag: str, parser: Parser) -> bool:
    """Return whether a flag that the corpus does not know can be none of Beam's."""
    if parser.is_old(flag):
        return True
    near = nearest(flag, parser.flags, most=1, likeness=_CERTAIN)
    return bool(near) and ("_" not in flag or flag.replace("_", "-") in near)
