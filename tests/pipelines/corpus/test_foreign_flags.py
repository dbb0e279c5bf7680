import re

from pipelines.corpus.foreign_flags import FOREIGN_FLAGS
from pipelines.corpus.options import Options
from pipelines.execute.cluster import beam_parser
from shards.commands.command import Parser, add_flags
from shards.commands.spelling import nearest

ELSEWHERE = {"--help", "--scatters", "--text-field"}
"""The flags of the trainer and of pipelines.text that hints mention."""


def ours() -> Parser:
    parser = Parser(prog="corpus")
    add_flags(parser, Options)
    return parser


def test_hints_name_existing_flags() -> None:
    flags = set(ours().flags)
    named = {
        flag for hint in FOREIGN_FLAGS.values() for flag in re.findall(r"(?<![\w-])--[a-z-]+", hint)
    }
    assert named <= flags | ELSEWHERE
    assert not flags & set(FOREIGN_FLAGS)
    assert all("_" not in flag for flag in FOREIGN_FLAGS)


def test_flags_of_beam_are_accepted() -> None:
    theirs, flags = beam_parser().flags, ours().flags
    assert "--runner" in theirs
    assert not {flag.replace("_", "-") for flag in theirs} & set(FOREIGN_FLAGS)
    # Flags that have no underscore are recognised only by their similarity to ours.
    assert not [flag for flag in theirs if "_" not in flag and nearest(flag, flags, likeness=0.8)]
    assert not {flag.replace("_", "-") for flag in theirs} & set(flags)
