"""The whole pipeline beside datatrove's: the same file, tokenizer, language model, one process.

datatrove reads, identifies the language, tokenizes and writes its tokens, shuffled within the
file; pipelines.text cleans, applies the glm rule, deduplicates and makes verified shards besides.
"""

import itertools
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import zstandard

from pipelines.filters.langid import installed_model
from pipelines.inputs.files import match_inputs
from pipelines.readers.reading import Reading, open_reader, splits
from pipelines.readers.record import Record
from tests.bench import inputs, tokenizer_json
from tests.bench.clock import children_cpu
from tests.bench.table import render

SCRIPT = Path(__file__).with_name("datatrove_run.py")
COMPARED = 500
"""Texts on which both tokenizers are compared."""
STARTED = 20
"""Texts of a run that is all start."""


def measure(python: str) -> str:
    """Return the table of both pipelines for each language.

    Args:
        python: An interpreter that has datatrove with a fastText of its own.
    """
    if not inputs.REAL_TEXT.exists():
        return "skipped: it takes the real text of ../shared/data/bench"
    rows, notes = [], []
    for text in inputs.texts():
        made = tokenizer_json.write(
            text.tokenizer, inputs.FOLDER / "json" / f"{text.language}.json"
        )
        alike = tokenizer_json.alike(text.tokenizer, made, _first_texts(text))
        notes.append(f"{text.language}: {100 * alike:.1f} % of texts have as many tokens in both")
        few, megabytes = _beginning(text), _megabytes(text)
        theirs = _rates(
            lambda each, made=made: _datatrove(python, each, made), text, few, megabytes
        )
        ours = _rates(_ours, text, few, megabytes)
        ratio = [f"{a / b:.1f} x" for a, b in zip(ours, theirs, strict=True)]
        for name, figures in (("datatrove", theirs), ("pipelines.text", ours)):
            rows.append([text.language, name, *(f"{figure:.2f}" for figure in figures)])
        rows.append([text.language, "ratio", *ratio])
    head = ("", "", "MB/CPU s", "MB/s", "MB/CPU s without the start")
    return f"{render(head, rows)}\n{'; '.join(notes)}"


def _rates(
    command: Callable[[inputs.Text], list[str]],
    text: inputs.Text,
    few: inputs.Text,
    megabytes: float,
) -> tuple[float, float, float]:
    """Return megabytes per CPU second, per second, and per CPU second less what few texts take."""
    start, _ = _spent(command(few))
    cpu, seconds = _spent(command(text))
    return megabytes / cpu, megabytes / seconds, megabytes / (cpu - start)


def _beginning(text: inputs.Text) -> inputs.Text:
    """Return a file of the first texts: what a command takes for it is its start."""
    path = inputs.FOLDER / f"start-{text.language}.jsonl.zst"
    lines = [
        json.dumps({"id": str(at), "text": each}) for at, each in enumerate(_first_texts(text))
    ]
    path.write_bytes(zstandard.compress("\n".join(lines[:STARTED]).encode() + b"\n"))
    return replace(text, path=path)


def _datatrove(python: str, text: inputs.Text, tokenizer: Path) -> list[str]:
    output = inputs.FOLDER / "output-datatrove"
    shutil.rmtree(output, ignore_errors=True)
    model = installed_model()
    return [python, *map(str, (SCRIPT, text.path, tokenizer, model, text.language, output))]


def _ours(text: inputs.Text) -> list[str]:
    output = inputs.FOLDER / "output-rivals"
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-m", "pipelines.text", "--input", str(text.path)]
    command += ["--tokenizer", text.tokenizer, "--output", str(output), "--quality", "glm"]
    return [*command, "--workers", "1", "--lid-chars", "0"]


def _spent(command: Sequence[str]) -> tuple[float, float]:
    """Return CPU seconds and seconds of a command."""
    started, spent = time.monotonic(), children_cpu()
    done = subprocess.run(command, cwd=inputs.ROOT, capture_output=True, check=False, text=True)
    if done.returncode:
        raise RuntimeError(f"{command} failed:\n{done.stderr[-2000:]}")
    return children_cpu() - spent, time.monotonic() - started


def _records(text: inputs.Text) -> list[str]:
    (file,) = match_inputs([str(text.path)], pattern="*", default_name="text")
    reading = Reading(text_fields=(text.field,))
    (split,) = splits(file, reading, split_bytes=file.bytes)
    found = (item for item in open_reader(split, reading) if isinstance(item, Record))
    return [record.value[text.field] for record in found]


def _first_texts(text: inputs.Text) -> list[str]:
    return list(itertools.islice(_records(text), COMPARED))


def _megabytes(text: inputs.Text) -> float:
    return sum(len(each.encode()) for each in _records(text)) / 1e6
