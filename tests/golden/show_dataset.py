"""Prints a part of a dataset: python -m tests.golden.show_dataset PART DATASET.

PART is texts (the texts of the documents) or duplicates (the report's figures on duplicates).
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from shards import Dataset

_MAX_CHARS = 240
"""Longer lines are cut off; the hash of the tokens pins the rest of the text."""


def main() -> None:
    """Print the part of the dataset, line by line."""
    what, folder = sys.argv[1:]
    found = {"texts": _texts, "duplicates": _duplicates}[what](Path(folder))
    print("\n".join(sorted(found)))


def _texts(folder: Path) -> Iterator[str]:
    """Yield the id and text of each document."""
    dataset = Dataset.open(str(folder))
    for split in ("train", "validation"):
        for shard in dataset.documents(split=split).shards():
            for row in range(len(shard)):
                text = dataset.vocabulary.decode(shard[row][:-1])
                named = "id" in shard.documents.schema.names
                shown = f"{shard.value('id', row) if named else split}: {text!a}"
                # Otherwise the comparison of outputs would mask numbers that look like versions.
                yield re.sub(r"(?<=\d)\.(?=\d)", "·", shown)[:_MAX_CHARS]


def _duplicates(folder: Path) -> Iterator[str]:
    """Yield the figures on duplicates, one per line."""
    report = json.loads((folder / "report.json").read_text("utf-8"))
    for kind, figures in report["dedup"].items():
        for name, value in figures.items():
            yield f"{kind}.{name}: {json.dumps(value)}"


if __name__ == "__main__":
    main()
