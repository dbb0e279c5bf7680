"""The levels of cleaning: none, white space only, or all repairs."""

from collections.abc import Iterable, Mapping, Sequence

from pipelines.corpus.document import Document
from shards.commands.spelling import expected
from shards.errors import UserError

LEVELS = (NONE, WHITESPACE, REPAIR) = ("none", "whitespace", "repair")
"""The levels in ascending order; each level includes the levels before it."""


def parse_levels(specs: Sequence[str]) -> Mapping[str, str]:
    """Return the levels that --clean sets, by the name of an input; "" stands for all other inputs.

    Raises:
        UserError: A level is unknown, or an input has two levels.
    """
    levels: dict[str, str] = {}
    for spec in specs:
        name, _, level = spec.rpartition("=")
        if level not in LEVELS:
            raise UserError(
                f"--clean {spec}: {level!r} is not a level of cleaning; {expected(level, LEVELS)}, "
                "for one input NAME=LEVEL, as in --clean repair,code=none"
            )
        if name in levels:
            raise UserError(f"--clean {','.join(specs)} gives {name or 'all inputs'} two levels")
        levels[name] = level
    return levels


def check_inputs(specs: Sequence[str], sources: Iterable[str]) -> None:
    """Check that --clean names only inputs of the run.

    Raises:
        UserError: --clean names an input that does not exist.
    """
    known = [*sources]
    for name in parse_levels(specs):
        if name and name not in known:
            raise UserError(f"--clean {name}=…: no input is called {name}; {expected(name, known)}")


def given_level(specs: Sequence[str], source: str) -> str:
    """Return the level that --clean sets for an input; "" if it sets none."""
    levels = parse_levels(specs)
    return levels.get(source, levels.get("", ""))


def level_of(document: Document, given: str) -> str:
    """Return the level that --clean or else the document sets; REPAIR if neither sets one."""
    return given or document.clean or REPAIR
