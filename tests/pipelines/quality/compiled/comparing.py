"""A compiled measure against the plain one of its profile."""

import io
import json
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pytest
import zstandard
from hypothesis import strategies as st

from pipelines.quality.catalog import find_profile
from pipelines.quality.compiled.measures import MEASURES
from pipelines.quality.profile import Measure
from pipelines.quality.words import MeasuredText, Splitters

_BENCH = Path(__file__).parents[4] / ".." / "shared" / "data" / "bench"

ODD = st.lists(
    st.sampled_from(
        [
            *"aZ1٣.?!\"'”’)]…。；#-•*{[ ",
            *"\n\t\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029\u3000\ufeff",
            *("\r\n", "\n\n", "\ud800", "\U0010ffff", "😀", "ΑΣ", "İ", "\u212a", "ß", "的", "是的"),
            *("one ", "two three ", "a b c d e f.", "的年在月", "好！", "？”", "3.14", "1.2.3"),
        ]
    ),
    max_size=60,
).map("".join)
"""Text of what is read in a special way somewhere."""


class NoLibraries(Splitters):
    """Splits at white space; its numbers of sentences tell by which lines it was asked."""

    def words(self, text: str, **_: str) -> list[str]:
        return text.split()

    def num_sentences(self, lines: Iterable[str]) -> int:
        return zlib.crc32("\n".join(lines).encode("utf-8", "surrogatepass"))


def check(
    name: str, text: str, language: str = "en", *, splitters: Splitters, **bounds: float
) -> MeasuredText:
    """Assert that both measures of a profile say the same; return the text they pass on."""
    profile = find_profile(name)
    bounds = {**profile.defaults, **bounds}

    def measured(measure: Measure) -> tuple[str, bool, str, MeasuredText]:
        before = MeasuredText(text, language, splitters=splitters)
        after, metrics = measure(before, bounds)
        # Printed: nothing else is equal to NaN, and 1 is not 1.0.
        return after.text, after is before, repr(metrics), after

    *plain, passed_on = measured(profile.measure)
    assert measured(MEASURES[name])[:-1] == tuple(plain), (name, text, language, bounds)
    return passed_on


def real_texts(language: str, most: int) -> Iterator[str]:
    """Yield some of the texts that benchmarks read; skip the test where they are missing."""
    path = _BENCH / f"{language}.jsonl.zst"
    if not path.is_file():
        pytest.skip("the texts of the benchmarks are not at ../shared/data/bench")
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        for line in islice(io.TextIOWrapper(stream, encoding="utf-8"), most):
            yield json.loads(line)["text"]
