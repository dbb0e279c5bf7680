"""Writes docs/evidence.md from docstrings' guarantees and benchmarks' results: `--write`.

A module whose tests show a guarantee has a paragraph "Guarantee: …" in its docstring. The results
come from `make bench ARGS=--write`.
"""

import ast
import re
import sys
from collections.abc import Iterator

from tests.flags_page import ROOT, show

PAGE = ROOT / "docs" / "evidence.md"
HEAD = """# Evidence

What corpusmill promises, with the test that shows it, and how fast it is. This page is written by
`python -m tests.evidence_page --write` and `make bench ARGS=--write`.
[What happens when something fails](pipelines.md#when-something-fails) is a table of its own.

## What holds

The sample's shards have the same bytes on Python 3.11, 3.12 and 3.13 too (`make test-pythons`).

| guarantee | shown by |
|---|---|
"""
FIGURES = """
## Figures

What `make bench` measured last, each table with its command, machine and date. A process of one
core does the work, unless the table says more. Compare the rows of a table, not those of two.
"""


def page() -> str:
    """Return the new text of the page, which keeps the present results of benchmarks."""
    rows = [f"| {promise} | `{path}` |\n" for promise, path in guarantees()]
    figures = PAGE.read_text("utf-8").partition("\n### ")[1:]
    return HEAD + "".join(rows) + FIGURES + "".join(figures)


def guarantees() -> Iterator[tuple[str, str]]:
    """Yield each guarantee, and the path of the module that shows it."""
    for path in sorted(ROOT.glob("tests/**/*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        for promise in re.findall(r"^Guarantee: (.*?)(?:\n\n|\Z)", docstring, re.S | re.M):
            yield " ".join(promise.split()), str(path.relative_to(ROOT))


def record(title: str, text: str) -> None:
    """Write results below their title on the page, and replace earlier ones."""
    before, _, after = PAGE.read_text("utf-8").partition(f"\n### {title}\n")
    rest = after.partition("\n### ")
    PAGE.write_text(f"{before}\n### {title}\n\n```\n{text}\n```\n{''.join(rest[1:])}", "utf-8")


if __name__ == "__main__":
    sys.exit(show(page(), PAGE, sys.argv[1:]))
