"""Writes docs/flags.md: the flags of all commands, and the quality thresholds (`--write`)."""

import argparse
import itertools
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from math import isnan
from pathlib import Path

from pipelines.corpus.options import NOTHING, Options
from pipelines.quality.catalog import PROFILES
from shards.commands.command import Parser
from shards.commands.completion import parser_of
from shards.commands.table import COMMANDS, CORPUS, GROUPS, Entry

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "flags.md"
HEAD = """# Flags

Every flag of every command, written by `python -m tests.flags_page --write`. `corpusmill NAME` is
`python -m MODULE`. Numbers may be written `300`, `20k`, `100M`, `2GB` (powers of ten) or `128MiB`,
shares `0.05` or `5%`, times `30s`, `15m`, `1.5h` or `2d`. Flags cannot be abbreviated.
"""
CORPORA = """## Every corpus

The flags of `wudao`, `pile`, `fineweb`, `text` and the other corpora. Those marked \\* decide
bytes: the manifest records them, and a dataset is never continued with another value. Further flags
go to Apache Beam; what follows `--` goes to its runner.
"""
THRESHOLDS = """## Quality thresholds

The bounds of each [quality profile](quality.md#choosing-rules) and its variants, in the order in
which the rules are applied. `--threshold` sets another bound; `off` switches the rule off. Those
marked *not exact* decide how a text is read and give no reason; `rethreshold` answers for the rest.
"""


def page() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *_corpora(), *_others(), *_thresholds()]) + "\n"


def _corpora() -> Iterator[str]:
    shared = {field.name for field in fields(Options)}
    decides = {field.name for field in fields(Options) if field.metadata["affects"] != NOTHING}
    entries = [entry for entry in COMMANDS.values() if entry.made_by == CORPUS]
    yield CORPORA
    yield from _table(_parser(entries[0]), only=shared, marked=decides)
    for entry in entries:
        parser = _parser(entry)
        own = {action.dest for action in parser._actions if action.dest not in shared}
        if own - {"help"}:
            yield from (f"## {entry.name}", "", f"`python -m {entry.module}`: {entry.about}.", "")
            yield from _table(parser, only=own)


def _others() -> Iterator[str]:
    for group in GROUPS.values():
        for entry in group:
            if entry.made_by != CORPUS:
                yield from (f"## {entry.name}", "", f"`{entry.program}`: {entry.about}.", "")
                yield from _table(_parser(entry))


def _thresholds() -> Iterator[str]:
    yield THRESHOLDS
    for family, profiles in itertools.groupby(PROFILES, lambda profile: profile.family):
        variants = [*profiles]
        names = [f"`@{one.variant}`" if one.variant else "bound" for one in variants]
        yield from (f"### {family}", "", _row("threshold", *names, "meaning", "reason"))
        yield "|---" * (len(names) + 3) + "|"
        for same in zip(*(one.thresholds for one in variants), strict=True):
            bounds = ["off" if isnan(one.default) else f"{one.default:,.10g}" for one in same]
            first = same[0]
            reason = f"`{family}-{first.rule}`" if first.exact else "none: not exact"
            yield _row(f"`{first.name}`", *bounds, first.meaning, reason)
        yield ""


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _parser(entry: Entry) -> Parser:
    parser = parser_of(entry, {})
    assert parser is not None, entry.name
    return parser


def _table(
    parser: Parser, *, only: Collection[str] | None = None, marked: Collection[str] = ()
) -> Iterator[str]:
    """Yield the rows of a parser's flags and positional arguments.

    Args:
        parser: The parser of a command.
        only: The names of the arguments to list; None for all.
        marked: The names of the arguments that get a mark.
    """
    yield from ("| flag | meaning |", "|---|---|")
    for action in parser._actions:
        is_listed = only is None or action.dest in only
        if is_listed and action.help != argparse.SUPPRESS and action.dest != "help":
            mark = " \\*" if action.dest in marked else ""
            yield _row(f"{_named(parser, action)}{mark}", _meaning(action))
    yield ""


def _named(parser: Parser, action: argparse.Action) -> str:
    metavar = parser._get_formatter()._format_args(action, str(action.dest).upper())
    words = [f"`{flag} {metavar}`".replace(" `", "`") for flag in action.option_strings]
    return " ".join(words or [f"`{metavar}`"]).replace("|", "\\|")


def _meaning(action: argparse.Action) -> str:
    help_ = " ".join((action.help or "").replace("%%", "%").replace(f"{ROOT}/", "").split())
    return help_.replace("|", "\\|").replace("<", "\\<")


def show(text: str, path: Path, words: Sequence[str]) -> int:
    """Write a page if `words` contain --write, else print it; return the exit code."""
    if list(words) == ["--write"]:
        path.write_text(text, "utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(show(page(), PAGE, sys.argv[1:]))
