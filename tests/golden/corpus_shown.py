"""Print what became of records: python -m tests.golden.corpus_shown PART DATASET.

PART is texts (of the documents kept) or duplicates (groups of them, as the report counts them).
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from shards import Dataset

_LONGEST = 240
"""Longer texts are cut: the hash of the tokens pins the rest."""


def main() -> None:
    """Print a line for each record, by its id."""
    what, folder = sys.argv[1:]
    found = {"texts": _texts, "duplicates": _duplicates}[what](Path(folder))
    print("\n".join(sorted(found)))


def _texts(folder: Path) -> Iterator[str]:
    """Yield the text of each document that was kept."""
    dataset = Dataset.open(str(folder))
    for split in ("train", "validation"):
        for shard in dataset.documents(split=split).shards():
            for row in range(len(shard)):
                text = dataset.vocabulary.decode(shard[row][:-1])
                named = "id" in shard.documents.schema.names
                shown = f"{shard.value('id', row) if named else split}: {text!a}"
                # Text that looks like a version is masked where output is compared.
                yield re.sub(r"(?<=\d)\.(?=\d)", "·", shown)[:_LONGEST]


def _duplicates(folder: Path) -> Iterator[str]:
    """Yield the figures on duplicates, one a line."""
    report = json.loads((folder / "report.json").read_text("utf-8"))
    for kind, figures in report["dedup"].items():
        for name, value in figures.items():
            yield f"{kind}.{name}: {json.dumps(value)}"


if __name__ == "__main__":
    main()
