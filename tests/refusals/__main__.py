"""Write what rows are refused with: python -m tests.refusals [MODULE …] [NAME …] --update.

Rows whose paragraph is another now get that one; texts of rows that are gone go. Look at the diff.
"""

import re
import sys
import tempfile
from pathlib import Path

from tests.refusals.refusal import Accepted
from tests.refusals.runner import paragraph_of, run
from tests.refusals.said import expected, lasting, said, write
from tests.refusals.table import modules, rows_of


def main(asked: list[str]) -> None:
    """Run the rows that are asked for, all of them by default, and write their texts."""
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
        write(module, texts)


if __name__ == "__main__":
    main([word for word in sys.argv[1:] if word != "--update"])
