"""The messages that rows expect: `messages/MODULE.json` has each row's paragraph by row name.

In a paragraph, … stands for any text: a part that differs between runs, or one that another row
gives in full.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.refusals.refusal import Refusal, text_pattern

FOLDER = Path(__file__).parent / "messages"


@cache
def expected_messages(module: str = "*") -> Mapping[str, str]:
    """Return the paragraphs of a module's rows by row name; by default, those of all modules."""
    return {
        name: text
        for path in sorted(FOLDER.glob(f"{module}.json"))
        for name, text in json.loads(path.read_text("utf-8")).items()
    }


def message_pattern(row: Refusal) -> str:
    """Return a regular expression that matches the paragraph of a row."""
    missing = "this row has no message yet: give --update"
    return row.message or text_pattern(expected_messages().get(row.name, missing))


def write(module: str, texts: Mapping[str, str]) -> None:
    """Write the paragraphs of a module."""
    lines = json.dumps(texts, ensure_ascii=False, indent=0)
    (FOLDER / f"{module}.json").write_text(f"{lines}\n", "utf-8")


def without_variable_parts(paragraph: str, folder: Path) -> str:
    """Return a paragraph with … for the path of the folder, and for identities in file names."""
    path = re.escape(str(folder.resolve()))
    return re.sub(rf"{path}(?=/|\b)|(?<=-)[0-9a-f]{{8}}(?!\w)", "…", paragraph)
