"""What is loaded with native loops, or without: both in one process."""

from collections.abc import Callable
from functools import cache
from typing import TypeVar

from pipelines.compiled import use_native
from pipelines.quality.words import DATATROVE, SPACES, Splitters

_Loaded = TypeVar("_Loaded")


def loaded(load: Callable[[], _Loaded], *, native: bool) -> _Loaded:
    """Return what a function loads in a process that uses native loops, or none."""
    use_native(native)
    try:
        return load()
    finally:
        use_native(False)


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
