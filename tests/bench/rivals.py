"""Measures our pipeline and datatrove's in one process, with the same file and models.

Both read, identify the language, apply the same rules, and tokenize. `bare` has no rules, `fineweb`
has FineWeb's four filters and near-duplicate signatures, and `fineweb2` has FineWeb-2's filters for
Mandarin. datatrove then writes its tokens, shuffled within the file. pipelines.text also cleans,
deduplicates, and writes verified shards.

With rules, datatrove takes minutes for ten megabytes, so it reads only the beginning of the file.
The start of a run is measured on a few texts in a second run, when everything is compiled. For both
pipelines, the time for LARGE megabytes is start + megabytes / rate.
"""

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import zstandard

from pipelines.steps.langid import installed_model
from tests.bench import tokenizer_json
from tests.bench.cost import Command, run_measured
from tests.bench.inputs import (
    FINEWEB,
    FINEWEB2,
    FOLDER,
    NO_REAL_TEXT,
    REAL_TEXT,
    Text,
    chinese,
    english,
    fresh_path,
)
from tests.bench.table import render

SCRIPT = Path(__file__).with_name("datatrove_steps.py")
NEEDED = """
import importlib.metadata, datatrove
importlib.metadata.version('fasttext-numpy2-wheel')
"""
COMPARED, STARTED = 500, 20
"""The numbers of texts on which tokenizers are compared, and on which the start is measured."""
SLOW_MEGABYTES, LARGE = 10, 300
"""The megabytes that datatrove reads if there are rules, and the megabytes of the last column."""
RACES: Sequence[tuple[str, str, Sequence[str]]] = (
    ("en", "bare", ("--quality", "glm")),
    ("en", "fineweb", ("--quality", f"en={FINEWEB}", "--dedup", "minhash")),
    ("zh", "bare", ("--quality", "glm")),
    ("zh", "fineweb2", ("--quality", f"zh={FINEWEB2}")),
)
"""The language, the recipe of datatrove_steps.py, and the recipe as flags of pipelines.text."""


@dataclass(frozen=True)
class Figures:
    """The MB read, the CPU seconds of the start, and the MB per CPU second after the start."""

    megabytes: float
    start: float
    rate: float

    @property
    def whole(self) -> float:
        return LARGE / (self.start + LARGE / self.rate)


def measure(python: str) -> str:
    """Return the table that compares both pipelines for each recipe.

    Args:
        python: An interpreter that has datatrove and fasttext-numpy2-wheel.
    """
    if not REAL_TEXT.exists():
        return NO_REAL_TEXT
    if subprocess.run([python, "-c", NEEDED], capture_output=True, check=False).returncode:
        return (
            f"skipped: {python} has no datatrove with fasttext-numpy2-wheel, which it asks for by "
            "that name. --python names an interpreter with both"
        )
    rows, notes, texts, tokenizers = [], [], {}, {}
    for text in (english(), chinese()):
        texts[text.language] = text
        path = tokenizer_json.write(text.tokenizer, FOLDER / "json" / f"{text.language}.json")
        tokenizers[text.language] = path
        some = [*itertools.islice(text.read(), COMPARED)]
        agreement = tokenizer_json.agreement(text.tokenizer, path, some)
        notes.append(f"{text.language}: {100 * agreement:.1f} % have as many tokens in both")
    for language, recipe, flags in RACES:
        text, tokenizer = texts[language], tokenizers[language]

        def theirs(of: Text, *_: str, recipe: str = recipe, tokenizer: Path = tokenizer) -> Command:
            output = fresh_path("output-datatrove")
            return [python, SCRIPT, recipe, of.path, output, tokenizer, installed_model()]

        def ours(of: Text, *program: str, flags: Sequence[str] = flags) -> Command:
            words = ("--input", of.path, "--tokenizer", of.tokenizer, "--workers", "1", *flags)
            return [sys.executable, *program, *words, "--output", fresh_path("output-rivals")]

        part = text if recipe == "bare" else _beginning(text, megabytes=SLOW_MEGABYTES)
        race = {"datatrove": _figures(theirs, part), "pipelines.text": _figures(ours, text)}
        for name, got in race.items():
            cells = (f"{value:.2f}" for value in (got.start, got.rate, got.whole))
            rows.append([f"{language} {recipe} {name}", f"{got.megabytes:.0f}", *cells])
        they, we = race.values()
        ratios = (f"{we.rate / they.rate:.1f} x", f"{we.whole / they.whole:.1f} x")
        rows.append([f"{language} {recipe} ratio", "", "", *ratios])
    head = ("", "MB", "start, CPU s", "MB/CPU s then", f"MB/CPU s for {LARGE} MB")
    return f"{render(head, rows)}\n{'; '.join(notes)}"


def _figures(command: Callable[..., Command], text: Text) -> Figures:
    start = 0.0
    for _ in range(2):  # the first run compiles code and fills caches
        start = run_measured(command(_beginning(text, texts=STARTED), "-m", "pipelines.text")).cpu
    cost = run_measured(command(text, "-m", "pipelines.text"))
    megabytes = sum(len(each.encode()) for each in text.read()) / 1e6
    return Figures(megabytes, start, megabytes / (cost.cpu - start))


def _beginning(text: Text, *, texts: int | None = None, megabytes: float = LARGE) -> Text:
    """Return a file of the first texts of a file, up to a number of texts or megabytes."""
    path = FOLDER / f"start-{text.language}-{texts}-{megabytes}.jsonl.zst"
    size, lines = 0, []
    for number, each in enumerate(itertools.islice(text.read(), texts)):
        size += len(each.encode())
        if size > megabytes * 1e6:
            break
        lines.append(json.dumps({"id": str(number), "text": each}) + "\n")
    path.write_bytes(zstandard.compress("".join(lines).encode()))
    return replace(text, path=path)
