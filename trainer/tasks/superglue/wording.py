"""How the texts of tasks are cleaned before they go into a pattern."""

import string

_PLAIN = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "–": "-"})


def plain(text: str) -> str:
    """Return a text with curly quotes and en dashes as ASCII has them."""
    return text.translate(_PLAIN)


def open_ended(text: str) -> str:
    """Return a text without the punctuation at its end, however much there is."""
    return text.rstrip(string.punctuation)


def lower_first(text: str) -> str:
    """Return a text whose first character is small."""
    return text[:1].lower() + text[1:]
