"""Measures our rules and datatrove's filters on the same slices of text.

Every slice is new text. When its time is up, a slow implementation stops while the other continues.
datatrove's filters stop at the first rule that a text breaks; ours compute every metric of every
rule.
"""

import importlib.util
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from pipelines.dedup.fingerprint import Fingerprinter
from pipelines.quality import QualityRules
from pipelines.steps.langid import load_identifier
from tests.bench.inputs import FINEWEB, FINEWEB2, NO_REAL_TEXT, PAPERS, REAL_TEXT, chinese, english
from tests.bench.table import render

SLICE_BYTES = 500_000
TURNS = 8
"""The CPU seconds after which an implementation gets no more slices."""
FEW_CHARS = 1024
FIRST = ["Loads what is loaded on first use. 第一次使用时才加载。"]

Work = Callable[[Sequence[str]], object]


@dataclass
class Implementation:
    """A set of rules, the number of bytes that it has processed, and its CPU time in seconds."""

    work: Work
    seconds: float = 0.0
    num_bytes: int = 0

    def process(self, texts: Sequence[str], num_bytes: int) -> None:
        """Process a slice unless the time is up."""
        if self.seconds < TURNS:
            started = time.process_time()
            self.work(texts)
            self.seconds += time.process_time() - started
            self.num_bytes += num_bytes

    @property
    def rate(self) -> str:
        """The processed MB per second of CPU time."""
        return f"{self.num_bytes / 1e6 / self.seconds:.3g}"


def measure(model: Path | None) -> str:
    """Return the table of rates.

    Args:
        model: A language model; None for the installed model.
    """
    if not REAL_TEXT.exists():
        return NO_REAL_TEXT
    texts = {"en": english(), "zh": chinese()}
    rows = []
    for name, language, load in _rows(model):
        implementations = {"ours": Implementation(load())}
        implementations["ours"].work(FIRST)
        if (recipe := DATATROVE.get(name)) and importlib.util.find_spec("datatrove"):
            implementations["datatrove"] = Implementation(_datatrove(recipe))
        for part, num_bytes in _slices(texts[language].read()):
            for each in implementations.values():
                each.process(part, num_bytes)
        rates = [each.rate for each in implementations.values()]
        rows.append([name, language, *rates, *[""] * (2 - len(rates))])
    return render(("MB per CPU second", "", "ours", "datatrove"), rows)


DATATROVE: Mapping[str, str] = {FINEWEB: "fineweb", FINEWEB2: "fineweb2"}
"""The recipe of datatrove_steps.py for each quality profile."""


def _rows(model: Path | None) -> Iterator[tuple[str, str, Callable[[], Work]]]:
    """For each row, yield a name, a language, and a function that loads the rules."""
    profiles = [("en", spec) for spec in (FINEWEB, PAPERS, *PAPERS.split("+"))]
    for language, spec in (*profiles, ("zh", FINEWEB2)):
        yield spec, language, lambda of=language, spec=spec: _rules(of, spec)
    for language in ("en", "zh"):
        yield "language", language, lambda: load_identifier(model).identify
        name = f"language, {FEW_CHARS} characters"
        yield name, language, lambda: load_identifier(model, chars=FEW_CHARS).identify
        for near in (False, True):
            name = f"fingerprints{' with signatures' * near}"
            yield name, language, lambda near=near: _fingerprints(near)


def _rules(language: str, spec: str) -> Work:
    quality = QualityRules.parse((f"{language}={spec}",))
    return lambda texts: quality.judge(texts, [language] * len(texts))


def _fingerprints(near: bool) -> Work:
    fingerprinter = Fingerprinter(near=near)
    return lambda texts: fingerprinter.fingerprints(pa.array(texts, pa.large_string()))


def _datatrove(recipe: str) -> Work:
    """Return a function that applies datatrove's filters until a filter drops the text."""
    from datatrove.data import Document  # noqa: PLC0415  optional

    from tests.bench.datatrove_steps import filters  # noqa: PLC0415  imports datatrove

    rules = filters(recipe)

    def work(texts: Sequence[str]) -> object:
        documents = [Document(text=text, id="0") for text in texts]
        return [all(rule.filter(document) is True for rule in rules) for document in documents]

    work(FIRST)
    return work


def _slices(documents: Iterator[str]) -> Iterator[tuple[list[str], int]]:
    """Yield slices of SLICE_BYTES and the slices' sizes, leaving out a smaller last slice."""
    texts: list[str] = []
    num_bytes = 0
    for text in documents:
        texts.append(text)
        num_bytes += len(text.encode())
        if num_bytes >= SLICE_BYTES:
            yield texts, num_bytes
            texts, num_bytes = [], 0
