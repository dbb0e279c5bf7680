"""The command `look`: inspects an input, and prints the command that makes a dataset from it.

It lists all files and reads only the beginnings of a few. It writes nothing.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from typing import Any

from pipelines.look.inspection import Inspection, inspect_input
from pipelines.look.page import command, page
from shards.commands.command import Command, log_errors
from shards.commands.flags import WORD, option
from shards.commands.output import json_text, print_line, print_lines

_EXAMPLE_CHARACTERS = 200


@dataclass(frozen=True, kw_only=True)
class Look(Command):
    """Inspect files, and suggest the command that reads them."""

    STOPPED = "nothing was written"

    path: tuple[str, ...] = option(MISSING, flag=WORD, nargs="+", metavar="PATH")
    """Folders, globs, URLs or hf:OWNER/NAME, each of them one input, as for --input; or files,
    which together are one input."""
    json: bool = option(False)
    """Print one line of JSON per input."""

    def run(self) -> None:
        """Print the findings about each input."""
        log_errors()
        for index, paths in enumerate(_inputs(self.path)):
            seen = inspect_input(*paths)
            if self.json:
                print_line(json_text(described(seen), stream=sys.stdout))
            else:
                print_lines(["", *page(seen)] if index else page(seen))


def _inputs(paths: Sequence[str]) -> list[list[str]]:
    """Return the paths of each input; all files, as from an unquoted glob, are one input."""
    inputs: dict[str, list[str]] = {}
    for path in paths:
        is_file = os.path.isfile(path)  # noqa: PTH113 - of any text
        inputs.setdefault("" if is_file else path, []).append(path)
    return [*inputs.values()]


def described(seen: Inspection) -> dict[str, Any]:
    """Return the findings of an inspection as values for JSON."""
    best = seen.guesses[0] if seen.guesses else None
    return {
        "paths": [*seen.paths],
        "kinds": [
            {
                "ending": kind.ending,
                "files": kind.num_files,
                "bytes": kind.num_bytes,
                "format": kind.form or None,
                "records": round(kind.records),
                "untaken": kind.why_skipped or None,
            }
            for kind in seen.kinds
        ],
        "remarks": [*seen.remarks],
        "refused": {**seen.refused},
        "faults": [
            {"path": head.file.path, "where": where, "reason": reason}
            for head in seen.heads
            for where, reason in head.places
        ]
        + [
            {"path": head.file.path, "where": None, "reason": head.refusal}
            for head in seen.heads
            if head.refusal
        ],
        "looked_at": len(seen.records),
        "fields": [
            {
                "name": field.name,
                "types": field.types,
                "present": round(field.present, 4),
                "chars": round(field.chars, 1),
                "example": field.example[:_EXAMPLE_CHARACTERS],
            }
            for field in seen.fields
        ],
        "text_field": seen.text_field or None,
        "languages": seen.languages,
        "corpora": {guess.corpus: guess.read / guess.tried for guess in seen.guesses},
        "command": command(seen, best) if best else None,
    }
