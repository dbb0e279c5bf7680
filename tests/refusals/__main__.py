"""Prints the rows whose messages have changed: python -m tests.refusals [MODULE …] [NAME …].

--update writes the new messages, and deletes those of rows that no longer exist. Read the diff.
"""

import re
import sys
import tempfile
from pathlib import Path

from tests.refusals.messages import (
    expected_messages,
    message_pattern,
    without_variable_parts,
    write,
)
from tests.refusals.refusal import Accepted
from tests.refusals.runner import paragraph_of, run
from tests.refusals.table import modules, rows_of


def main(asked: list[str], *, update: bool) -> None:
    """Run the rows with these names (default: all), and print or write their messages."""
    for module in modules():
        texts = {}
        for row in rows_of(module):
            if row.message or isinstance(row, Accepted):
                continue
            if not asked or {module, row.name} & {*asked}:
                with tempfile.TemporaryDirectory() as home:
                    folder = Path(home) / "here"
                    folder.mkdir()
                    row.setup(folder)
                    paragraph = paragraph_of(run(row, folder))
                if re.search(message_pattern(row), paragraph) is None:
                    print(f"{row.name}: {paragraph}", flush=True)
                    texts[row.name] = without_variable_parts(paragraph, folder)
                    continue
            if row.name in expected_messages(module):
                texts[row.name] = expected_messages(module)[row.name]
        if update and texts != expected_messages(module):
            write(module, texts)


if __name__ == "__main__":
    words = sys.argv[1:]
    main([word for word in words if word != "--update"], update="--update" in words)
