"""Print what became of records: python -m tests.golden.corpus_shown WHAT DATASET.

WHAT is texts (of the documents kept), metrics (what records are named after) or duplicates (groups
of them, as the report counts them).
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pyarrow import parquet

from shards import Dataset

_LONGEST = 240
"""What is longer is cut: the hash of the tokens pins the rest."""


def main() -> None:
    """Print a line for each record, by its id."""
    what, folder = sys.argv[1:]
    found = {"texts": _texts, "metrics": _metrics, "duplicates": _duplicates}[what](Path(folder))
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
                # What looks like a version is masked where output is compared.
                yield re.sub(r"(?<=\d)\.(?=\d)", "·", shown)[:_LONGEST]


def _metrics(folder: Path) -> Iterator[str]:
    """Yield the metric that each record is named after."""
    for file in sorted(folder.glob("*/audit/*.parquet")):
        for row in parquet.read_table(file).to_pylist():
            name = _name(row)
            for metric in name.split()[:1]:
                if metric in row:
                    yield f"{name}: {_rounded(row[metric])}"


def _duplicates(folder: Path) -> Iterator[str]:
    """Yield the figures on duplicates, one a line."""
    report = json.loads((folder / "report.json").read_text("utf-8"))
    for kind, figures in report["dedup"].items():
        for name, value in figures.items():
            yield f"{kind}.{name}: {json.dumps(value)}"


def _name(row: dict) -> str:
    (path,) = sorted(Path().rglob(row["path"]))
    with path.open("rb") as file:
        file.seek(row["position"])
        return str(json.loads(file.read(row["length"]))["id"])


def _rounded(value: float | None) -> str:
    return "none" if value is None else f"{value:.5g}"


if __name__ == "__main__":
    main()
