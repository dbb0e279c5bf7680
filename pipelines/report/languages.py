"""The languages of the page: Chinese names beside its English ones, and those of texts it shows."""

import json
import re
from functools import cache
from pathlib import Path

from pipelines.corpus.languages import plain_code

_LABEL = re.compile(r"([a-z]{2,3})(?:[_-]([A-Za-z]{2,4}))?")


def chinese(name: str) -> str:
    """Return the Chinese name of what the page names, "" for names that come from elsewhere."""
    return _names().get(name, "")


@cache
def _names() -> dict[str, str]:
    path = Path(__file__).parent / "templates" / "chinese.json"
    names: dict[str, str] = json.loads(path.read_bytes())
    return names


def language_tag(label: str | None) -> str:
    """Return the `lang` of a text (BCP 47) by the label of a model, "" if that says none.

    A browser chooses fonts by it: Chinese and Japanese share characters that they write otherwise.
    """
    match = _LABEL.fullmatch(label or "")
    return "-".join(filter(None, (plain_code(match[1]), match[2]))) if match else ""
