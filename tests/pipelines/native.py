"""What is loaded with native loops, or without: both in one process."""

import logging
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from pipelines import compiled
from pipelines.compiled import use_native
from pipelines.quality.words import DATATROVE, SPACES, Splitters

_Loaded = TypeVar("_Loaded")


def loaded(load: Callable[[], _Loaded], *, native: bool, differs: bool = False) -> _Loaded:
    """Return what a function loads in a process that uses native loops, or none.

    A native loop that is refused as it is loaded, for it does something else, is a fault, though
    the plain one takes its place: unless the test is about one that `differs`.
    """
    said: list[str] = []

    def note(record: logging.LogRecord) -> bool:
        said.append(record.getMessage())
        return True

    log = logging.getLogger(compiled.__name__)
    log.addFilter(note)
    use_native(native)
    try:
        found = load()
    finally:
        use_native(False)
        log.removeFilter(note)
    assert differs or not said
    return found


def pairs(text: str) -> list[str]:
    """Split a text into words of two characters, as a splitter of one's own may."""
    return [text[at : at + 2] for at in range(0, len(text), 2)]


@cache
def splitters(*languages: str, native: bool) -> Splitters:
    """Return splitters that have loaded what finds the words of languages."""
    return loaded(lambda: fresh_splitters(*languages), native=native)


def fresh_splitters(*languages: str) -> Splitters:
    """Return new splitters that have loaded what finds the words of languages."""
    made = Splitters()
    for language in languages:
        made.words("a", language=language, kind=SPACES if language == "zh" else DATATROVE)
    return made
