"""The paragraphs that refuse rows: `said/MODULE.json` has a paragraph for the name of each row.

… stands for anything: what differs from run to run, or what another row tells in full.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.refusals.refusal import Refusal, told

FOLDER = Path(__file__).parent / "said"


@cache
def said(module: str = "*") -> Mapping[str, str]:
    """Return the paragraphs of a module's rows by their names; of all modules by default."""
    return {
        name: text
        for path in sorted(FOLDER.glob(f"{module}.json"))
        for name, text in json.loads(path.read_text("utf-8")).items()
    }


def expected(row: Refusal) -> str:
    """Return the regular expression of the paragraph of a row."""
    return row.says or told(said().get(row.name, "there is no text of this row: give --update"))


def write(module: str, texts: Mapping[str, str]) -> None:
    """Make these the paragraphs of a module."""
    lines = json.dumps(texts, ensure_ascii=False, indent=0)
    (FOLDER / f"{module}.json").write_text(f"{lines}\n", "utf-8")


def lasting(paragraph: str, folder: Path) -> str:
    """Return a paragraph without the place of the folder and the identities in names of files."""
    place = re.escape(str(folder.resolve()))
    return re.sub(rf"{place}(?=/|\b)|(?<=-)[0-9a-f]{{8}}(?!\w)", "…", paragraph)
