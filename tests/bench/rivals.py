"""The whole pipeline beside datatrove's: the same file, tokenizer, language model, one process.

Both read, identify the language, apply the same rules and tokenize. `bare` has no rules; `fineweb`
has FineWeb's four filters and near-duplicate signatures; `fineweb2` FineWeb-2's filters for
Mandarin. datatrove then writes its tokens, shuffled within the file; pipelines.text also cleans,
deduplicates and makes verified shards.

datatrove takes minutes for ten megabytes where it has rules, so there it gets the beginning of the
file. What a run takes to start is measured on a few texts, the second time, when nothing is left to
compile; and what it would take for LARGE megabytes is start + megabytes / rate, for both.
"""

import itertools
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import zstandard

from pipelines.filters.langid import installed_model
from pipelines.inputs.files import match_inputs
from pipelines.readers.reading import Reading, open_reader, splits
from pipelines.readers.record import Record
from tests.bench import inputs, tokenizer_json
from tests.bench.clock import children_cpu
from tests.bench.recipes import FINEWEB, FINEWEB2
from tests.bench.table import render

SCRIPT = Path(__file__).with_name("datatrove_run.py")
NEEDED = """
import importlib.metadata, datatrove
importlib.metadata.version('fasttext-numpy2-wheel')
"""
COMPARED = 500
"""Texts on which both tokenizers are compared."""
STARTED = 20
"""Texts of a run that is all start."""
NATIVE = """
import sys
from unittest.mock import patch
from pipelines.run.command import main
with patch("pipelines.run.build.native_pays", lambda *_, **__: True):
    sys.exit(main("pipelines.text", sys.argv[1:]))
"""
"""pipelines.text with the start that a large run has, however few the texts."""
SLOW_MEGABYTES = 10
"""Text that datatrove gets where it has rules."""
LARGE = 300


@dataclass(frozen=True, kw_only=True)
class Race:
    """A recipe as datatrove_run.py calls it and as flags of pipelines.text have it."""

    language: str
    recipe: str
    flags: tuple[str, ...]


RACES = (
    Race(language="en", recipe="bare", flags=("--quality", "glm", "--lid-chars", "0")),
    Race(
        language="en", recipe="fineweb", flags=("--quality", f"en={FINEWEB}", "--dedup", "minhash")
    ),
    Race(language="zh", recipe="bare", flags=("--quality", "glm", "--lid-chars", "0")),
    Race(language="zh", recipe="fineweb2", flags=("--quality", f"zh={FINEWEB2}")),
)


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a command takes: to start, and for so many megabytes of text with the start."""

    start: float
    cpu: float
    seconds: float
    megabytes: float

    @property
    def rate(self) -> float:
        """Megabytes per CPU second, without the start."""
        return self.megabytes / (self.cpu - self.start)

    @property
    def figures(self) -> tuple[float, ...]:
        """CPU seconds of the start, MB per CPU second without it, and with it for LARGE MB."""
        return self.start, self.rate, LARGE / (self.start + LARGE / self.rate)


def measure(python: str) -> str:
    """Return the table of both pipelines for each recipe.

    Args:
        python: An interpreter that has datatrove with a fastText of its own.
    """
    if not inputs.REAL_TEXT.exists():
        return "skipped: it takes the real text of ../shared/data/bench"
    if subprocess.run([python, "-c", NEEDED], capture_output=True, check=False).returncode:
        return (
            f"skipped: {python} has no datatrove with fasttext-numpy2-wheel, which it asks for by "
            "that name. --python names an interpreter with both"
        )
    rows, notes = [], []
    texts = {text.language: text for text in inputs.texts()}
    made = {language: _tokenizer(text) for language, text in texts.items()}
    for language, text in texts.items():
        alike = tokenizer_json.alike(text.tokenizer, made[language], _texts(text)[:COMPARED])
        notes.append(f"{language}: {100 * alike:.1f} % of texts have as many tokens in both")
    for race in RACES:
        text = texts[race.language]
        theirs = _datatrove(python, race, text, made[race.language])
        ours = _ours(race, text)
        for name, spent in (("datatrove", theirs), ("pipelines.text", ours)):
            figures = (f"{figure:.2f}" for figure in spent.figures)
            rows.append([race.language, race.recipe, name, f"{spent.megabytes:.0f}", *figures])
        ratios = (f"{ours.figures[at] / theirs.figures[at]:.1f} x" for at in (1, 2))
        rows.append([race.language, race.recipe, "ratio", "", "", *ratios])
    head = ("", "", "", "MB", "start, CPU s", "MB/CPU s then", f"MB/CPU s for {LARGE} MB")
    return f"{render(head, rows)}\n{'; '.join(notes)}"


def _tokenizer(text: inputs.Text) -> Path:
    return tokenizer_json.write(text.tokenizer, inputs.FOLDER / "json" / f"{text.language}.json")


def _datatrove(python: str, race: Race, text: inputs.Text, tokenizer: Path) -> Spent:
    def command(of: inputs.Text) -> list[str]:
        output = inputs.FOLDER / "output-datatrove"
        shutil.rmtree(output, ignore_errors=True)
        arguments = (SCRIPT, of.path, tokenizer, installed_model(), race.recipe, output)
        return [python, *map(str, arguments)]

    start = _start(lambda: command(_beginning(text, num_texts=STARTED)))
    part = text if race.recipe == "bare" else _beginning(text, megabytes=SLOW_MEGABYTES)
    cpu, seconds = _spent(command(part))
    return Spent(start=start, cpu=cpu, seconds=seconds, megabytes=_megabytes(part))


def _ours(race: Race, text: inputs.Text) -> Spent:
    def command(of: inputs.Text, *program: str) -> list[str]:
        output = inputs.FOLDER / "output-rivals"
        shutil.rmtree(output, ignore_errors=True)
        start = [sys.executable, *program, "--input", str(of.path)]
        start += ["--tokenizer", of.tokenizer, "--output", str(output), "--workers", "1"]
        return [*start, *race.flags]

    start = _start(lambda: command(_beginning(text, num_texts=STARTED), "-c", NATIVE))
    cpu, seconds = _spent(command(text, "-m", "pipelines.text"))
    return Spent(start=start, cpu=cpu, seconds=seconds, megabytes=_megabytes(text))


def _beginning(text: inputs.Text, *, num_texts: int = 0, megabytes: float = 0) -> inputs.Text:
    """Return a file of the first texts: so many, or until there are as many megabytes."""
    texts = _texts(text)
    if megabytes:
        sizes = itertools.accumulate(len(each.encode()) for each in texts)
        num_texts = sum(size <= megabytes * 1e6 for size in sizes)
    path = inputs.FOLDER / f"start-{text.language}-{num_texts}.jsonl.zst"
    lines = [json.dumps({"id": str(i), "text": texts[i]}) + "\n" for i in range(num_texts)]
    path.write_bytes(zstandard.compress("".join(lines).encode()))
    return replace(text, path=path)


def _start(command: Callable[[], Sequence[str]]) -> float:
    """Return CPU seconds of the second run: the first one compiles, and fills caches."""
    _spent(command())
    return _spent(command())[0]


def _spent(command: Sequence[str]) -> tuple[float, float]:
    """Return CPU seconds and seconds of a command."""
    spent, started = children_cpu(), time.monotonic()
    done = subprocess.run(command, cwd=inputs.ROOT, capture_output=True, check=False, text=True)
    if done.returncode:
        raise RuntimeError(f"{command} failed:\n{done.stderr[-2000:]}")
    seconds = time.monotonic() - started
    return children_cpu() - spent, seconds


def _texts(text: inputs.Text) -> list[str]:
    (file,) = match_inputs([str(text.path)], pattern="*", default_name="text")
    reading = Reading(text_fields=(text.field,))
    (split,) = splits(file, reading, split_bytes=file.bytes)
    records = (item for item in open_reader(split, reading) if isinstance(item, Record))
    return [record.value[text.field] for record in records]


def _megabytes(text: inputs.Text) -> float:
    return sum(len(each.encode()) for each in _texts(text)) / 1e6
