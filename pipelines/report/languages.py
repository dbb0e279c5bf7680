"""The languages of the texts that the page shows."""

import re

from pipelines.corpus.languages import plain_code

_LABEL = re.compile(r"([a-z]{2,3})(?:[_-]([A-Za-z]{2,4}))?")


def language_tag(label: str | None) -> str:
    """Return the HTML `lang` (BCP 47) for a label of a language model; "" if it is not a language.

    Browsers choose fonts by `lang`, because Chinese and Japanese share characters whose shapes
    differ.
    """
    match = _LABEL.fullmatch(label or "")
    return "-".join(filter(None, (plain_code(match[1]), match[2]))) if match else ""
