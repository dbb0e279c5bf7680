"""Rules by themselves: compiled, plain, and datatrove's own filters, on the same slices of text.

Every slice is new text. A slow way takes part until it has had its time, then the others go on
without it. datatrove's filters stop at the first rule that a text breaks; the others work out every
metric of every rule.
"""

import importlib.util
import io
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import zstandard

from pipelines import compiled
from pipelines.dedup.fingerprint import load_fingerprinter
from pipelines.filters.langid import load_identifier
from pipelines.quality import Quality
from tests.bench import inputs, recipes
from tests.bench.table import render

SLICE_BYTES = 500_000
TURNS = 8
"""CPU seconds after which a way takes no more slices."""
LID_CHARS = 1024

Work = Callable[[Sequence[str]], object]


@dataclass
class Way:
    """One way to do the same work, with the bytes and CPU seconds it has had."""

    work: Work
    seconds: float = 0.0
    num_bytes: int = 0

    def turn(self, texts: Sequence[str], num_bytes: int) -> None:
        """Work on a slice, unless the time is up."""
        if self.seconds < TURNS:
            started = time.process_time()
            self.work(texts)
            self.seconds += time.process_time() - started
            self.num_bytes += num_bytes

    @property
    def rate(self) -> str:
        """MB per CPU second."""
        return f"{self.num_bytes / 1e6 / self.seconds:.3g}"


def measure(model: Path | None) -> str:
    """Return the table of rates.

    Args:
        model: A model of languages; None for the installed one.
    """
    if not inputs.REAL_TEXT.exists():
        return "skipped: it takes the real text of ../shared/data/bench"
    rows = []
    for name, language, ways in _questions(model):
        for texts, num_bytes in _slices(inputs.REAL_TEXT.with_name(f"{language}.jsonl.zst")):
            for way in ways.values():
                way.turn(texts, num_bytes)
        taken = ", ".join(f"{way.num_bytes / 1e6:.0f}" for way in ways.values())
        plain, fast, *theirs = ways.values()
        rows.append(
            [name, language, plain.rate, fast.rate, *(way.rate for way in theirs or ()), taken]
            if theirs
            else [name, language, plain.rate, fast.rate, "", taken]
        )
    return render(("MB per CPU second", "", "plain", "compiled", "datatrove", "MB taken"), rows)


def _questions(model: Path | None) -> Iterator[tuple[str, str, dict[str, Way]]]:
    for language, spec in (
        ("en", recipes.FINEWEB),
        ("en", recipes.PAPERS),
        *(("en", name) for name in recipes.PAPERS.split("+")),
        ("zh", recipes.FINEWEB2),
    ):
        ways = {name: _rules(language, spec, fast) for name, fast in _both()}
        if (filters := _datatrove(spec)) is not None:
            ways["datatrove"] = filters
        yield spec, language, ways
    for language in ("en", "zh"):
        yield (
            f"language, {LID_CHARS} characters",
            language,
            {
                name: Way(_loaded(fast, partial(load_identifier, model, chars=LID_CHARS)).identify)
                for name, fast in _both()
            },
        )
    for near in (False, True):
        for language in ("en", "zh"):
            yield (
                "fingerprints with signatures" if near else "fingerprints",
                language,
                {name: _fingerprints(near, fast) for name, fast in _both()},
            )


def _both() -> tuple[tuple[str, bool], ...]:
    return ("plain", False), ("compiled", compiled.available())


def _rules(language: str, spec: str, fast: bool) -> Way:
    quality = Quality.parse((f"{language}={spec}",))
    work = lambda texts: quality.judge(texts, [language] * len(texts))  # noqa: E731
    _loaded(fast, partial(work, ["Loads what is loaded on first use. 第一次使用时才加载。"]))
    return Way(work)


def _loaded(fast: bool, load: Callable[[], Any]) -> Any:
    """Return what a function loads with native loops, or without."""
    compiled.use_native(fast)
    return load()


def _fingerprints(near: bool, fast: bool) -> Way:
    fingerprinter = _loaded(fast, partial(load_fingerprinter, near=near))
    return Way(lambda texts: fingerprinter.fingerprints(pa.array(texts, pa.large_string())))


def _datatrove(spec: str) -> Way | None:
    """Return datatrove's filters for a recipe, one after the other until one drops the text."""
    if spec not in (recipes.FINEWEB, recipes.FINEWEB2) or not importlib.util.find_spec("datatrove"):
        return None
    from datatrove.data import Document  # noqa: PLC0415  optional

    from tests.bench import datatrove_filters  # noqa: PLC0415  imports datatrove

    filters = (
        datatrove_filters.fineweb()
        if spec == recipes.FINEWEB
        else datatrove_filters.fineweb2_chinese()
    )

    def work(texts: Sequence[str]) -> object:
        documents = [Document(text=text, id="0") for text in texts]
        return [all(rule.filter(document) is True for rule in filters) for document in documents]

    work(["Loads what is loaded on first use. 第一次使用时才加载。"])
    return Way(work)


def _slices(path: Path) -> Iterator[tuple[list[str], int]]:
    """Yield texts of SLICE_BYTES and their size, and in the end nothing less than that."""
    texts: list[str] = []
    num_bytes = 0
    with path.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as stream:
        for line in io.TextIOWrapper(stream, encoding="utf-8"):
            texts.append(json.loads(line)["text"])
            num_bytes += len(texts[-1].encode())
            if num_bytes >= SLICE_BYTES:
                yield texts, num_bytes
                texts, num_bytes = [], 0
