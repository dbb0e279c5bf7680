"""Say which rows are refused with another text: python -m tests.refusals [MODULE …] [NAME …].

With --update they get that text, and texts of rows that are gone go. Look at the diff.
"""

import re
import sys
import tempfile
from pathlib import Path

from tests.refusals.refusal import Accepted
from tests.refusals.runner import paragraph_of, run
from tests.refusals.said import expected, lasting, said, write
from tests.refusals.table import modules, rows_of


def main(asked: list[str], *, update: bool) -> None:
    """Run the rows that are named, all by default, and print or write their texts."""
    for module in modules():
        texts = {}
        for row in rows_of(module):
            if row.says or isinstance(row, Accepted):
                continue
            if not asked or {module, row.name} & {*asked}:
                with tempfile.TemporaryDirectory() as home:
                    folder = Path(home) / "here"
                    folder.mkdir()
                    row.scene(folder)
                    paragraph = paragraph_of(run(row, folder))
                if re.search(expected(row), paragraph) is None:
                    print(f"{row.name}: {paragraph}", flush=True)
                    texts[row.name] = lasting(paragraph, folder)
                    continue
            if row.name in said(module):
                texts[row.name] = said(module)[row.name]
        if update and texts != said(module):
            write(module, texts)


if __name__ == "__main__":
    words = sys.argv[1:]
    main([word for word in words if word != "--update"], update="--update" in words)
