"""The languages of the texts that the page shows."""

import re

from pipelines.corpus.languages import plain_code

_LABEL = re.compile(r"([a-z]{2,3})(?:[_-]([A-Za-z]{2,4}))?")


def language_tag(label: str | None) -> str:
    """Return the `lang` of a text (BCP 47) by the label of a model, "" if that says none.

    A browser chooses fonts by it: Chinese and Japanese share characters that they write otherwise.
    """
    match = _LABEL.fullmatch(label or "")
    return "-".join(filter(None, (plain_code(match[1]), match[2]))) if match else ""
