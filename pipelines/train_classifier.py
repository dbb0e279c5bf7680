"""Trains a fastText quality classifier on two folders of texts.

    python -m pipelines.train_classifier --positive good/ --negative web/ --output quality.bin

Texts of the first folder get the label `hq`, and those of the second `cc`, as for DCLM's
classifier. A share of the texts is held out, and the closing table shows how many of these each
bound keeps. The same input and options give the same bytes, because a single thread trains, with a
fixed seed.
"""

import argparse
import importlib
import json
import random
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.libraries import library_version
from pipelines.quality import QualityRules
from pipelines.steps.classifier import ClassifierScorer, line_of, metric_of
from pipelines.steps.fasttext import LABEL_PREFIX, file_hash
from pipelines.training_texts import HoldOut, TrainingTextOptions, TrainingTexts, check_new
from shards.commands.command import Command, log_plainly
from shards.commands.flags import count, fraction, local_path, option
from shards.commands.flags import positive as at_least_one
from shards.commands.output import print_lines
from shards.commands.table import called
from shards.console import run_module
from shards.errors import UserError
from shards.storage.files import atomic_write

THRESHOLDS = (0.01, 0.05, *(round(0.1 * step, 1) for step in range(1, 10)), 0.95, 0.99)
"""The bounds in the closing table."""

POSITIVE, NEGATIVE = "positive", "negative"

_PREFIX = LABEL_PREFIX.decode()
_LABEL_WORD = re.compile(rf"(?<!\S){_PREFIX}\S*")
"""A word that fastText would read as the label of a training text, and ignores in other texts."""

_AS_INPUT = (
    "folders, files or globs, as for --input of a corpus. Repeat the flag for several inputs, each "
    "as NAME=PATH, or NAME=CORPUS:PATH for another corpus."
)

_MIN_TEXTS = 20
"""The minimum number of training texts per label."""

_HELD_BYTES = 32 << 20
_LONG_WORDS = 15
"""The average word length in characters above which a script probably has no spaces."""

_ROW = "{:>9} {:>10} {:>10} {:>10}"


def _label(text: str) -> str:
    if not re.fullmatch(r"[\w-]+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a label: use letters, digits, _ and -")
    return text


def _rate(text: str) -> float:
    value = float(text)
    if not 0 < value <= 10:  # noqa: PLR2004  fastText's own default is 0.1
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 10")
    return value


@dataclass(frozen=True, kw_only=True)
class Side:
    """The texts of one label."""

    name: str
    """The name of the flag: POSITIVE or NEGATIVE."""
    label: str
    lines: list[str]
    """The texts to train on."""
    held_out: list[str]
    """The texts to measure the classifier with."""
    skipped: str
    """A phrase about unused texts, for the closing lines; "" if all texts were used."""

    def counts(self, specs: Sequence[str]) -> dict[str, Any]:
        """Return the entry of the report about this side."""
        return {
            "inputs": [*specs],
            "label": self.label,
            "trained_on": len(self.lines),
            "held_out": len(self.held_out),
        }


@dataclass(frozen=True, kw_only=True)
class SideOptions:
    """The texts that a classifier learns to distinguish."""

    positive: tuple[str, ...] = option(
        MISSING,
        f"Texts like those to keep: {_AS_INPUT}",
        required=True,
        action="extend",
        nargs="+",
        metavar="PATH",
        group="texts",
    )
    positive_label: str = option("hq", type=_label, metavar="LABEL")
    """Label of the texts to keep."""
    negative: tuple[str, ...] = option(
        MISSING,
        f"Texts like most of the corpus: {_AS_INPUT}",
        required=True,
        action="extend",
        nargs="+",
        metavar="PATH",
    )
    negative_label: str = option("cc", type=_label, metavar="LABEL")
    """Label of the other texts."""
    held_out: float = option(0.1, type=fraction, metavar="F")
    """Share of the texts to hold out for measuring the model."""


@dataclass(frozen=True, kw_only=True)
class ClassifierOptions:
    """The options that determine the bytes of a model; their names are fastText's."""

    epochs: int = option(5, type=at_least_one, metavar="N", group="model and training")
    """Number of epochs."""
    learning_rate: float = option(0.1, type=_rate, metavar="R")
    """Initial learning rate."""
    dimensions: int = option(64, type=at_least_one, metavar="N")
    """Size of an embedding."""
    word_ngrams: int = option(2, type=at_least_one, metavar="N")
    """Maximum length of word n-grams."""
    character_ngrams: int = option(0, type=count, metavar="N")
    """Maximum length of character n-grams; 0: none. 3 suits Chinese, which has no spaces."""
    buckets: int = option(500_000, type=at_least_one, metavar="N")
    """Number of embeddings for n-grams; the model has 4 bytes times --dimensions for each."""
    min_count: int = option(1, type=at_least_one, metavar="N")
    """Minimum number of times a word must occur to have its own embedding."""


@dataclass(frozen=True, kw_only=True)
class TrainClassifier(ClassifierOptions, TrainingTextOptions, SideOptions, Command):
    """Train a fastText classifier that distinguishes the texts of two inputs."""

    STOPPED = "nothing was written"
    USAGE = "%(prog)s --positive PATH --negative PATH --output PATH.bin [FLAG ...]"

    output: Path = option(MISSING, required=True, type=local_path, metavar="PATH.bin")
    """Model file to write."""

    def run(self) -> None:
        """Train a model, write it with its report, and print the closing lines.

        Raises:
            UserError: An option is not valid, or the input cannot be read or is too small.
        """
        report_path = self.output.with_suffix(".json")
        log_plainly()
        check_new(self.output, ".bin", "fastText")
        check_new(report_path, ".json", "fastText")
        if metric_of(self.positive_label) == metric_of(self.negative_label):
            raise UserError(
                f"--positive-label and --negative-label are both {self.positive_label}."
            )
        options = {field.name: getattr(self, field.name) for field in fields(ClassifierOptions)}
        options["seed"] = self.seed
        sides = [read_side(name, self) for name in (POSITIVE, NEGATIVE)]
        with tempfile.TemporaryDirectory() as folder:
            made = train(sides, Path(folder), options=self)
            table = measure(made, sides)
            report = {
                "sides": {side.name: side.counts(getattr(self, side.name)) for side in sides},
                "options": options,
                "library": library_version("fasttext-new"),
                "sha256": file_hash(made),
                "held_out": table,
            }
            with made.open("rb") as model, atomic_write(self.output) as handle:
                shutil.copyfileobj(model, handle)
            with atomic_write(report_path) as handle:
                handle.write(json.dumps(report, indent=1, ensure_ascii=False).encode() + b"\n")
            size = made.stat().st_size
        print_lines(self._closing(sides, table, size))

    def _closing(
        self,
        sides: Sequence[Side],
        table: Iterable[Mapping[str, float | None]],
        size: int,
    ) -> Iterable[str]:
        counts = ", ".join(
            f"{len(side.lines):,} {side.label} (held out: {len(side.held_out):,})" for side in sides
        )
        yield f"{self.output}: {size / 1e6:.1f} MB, trained on {counts}"
        for side in sides:
            if side.skipped:
                yield f"--{side.name}: {side.skipped}"
        yield _ROW.format("score >=", "precision", "recall", "negatives")
        for row in table:
            values = (row[name] for name in ("precision", "recall", "negatives_kept"))
            shares = ("-" if value is None else f"{value:.1%}" for value in values)
            yield _ROW.format(f"{row['threshold']:g}", *shares)
        for side in sides:
            length = _word_length(side.lines[:1000])
            if length > _LONG_WORDS and not self.character_ngrams:
                yield (
                    f"The words of --{side.name} have {length:.0f} characters on average: a "
                    "script without spaces, of which fastText sees whole sentences. Give "
                    "--character-ngrams 3."
                )
        path = shlex.quote(f"{self.output}:{sides[0].label}>=0.5")
        yield f"next: {called('CORPUS')} --input PATH --classifier {path}"


def read_side(name: str, options: TrainClassifier) -> Side:
    """Return the texts of one side.

    Raises:
        UserError: The texts cannot be read, or there are too few texts.
    """
    specs: Sequence[str] = getattr(options, name)
    hold_out = HoldOut(share=options.held_out, max_bytes=_HELD_BYTES)
    texts = TrainingTexts(specs, options, hold_out=hold_out, program="pipelines.train_classifier")
    lines = [line for line in map(_training_line, texts) if line]
    if len(lines) < _MIN_TEXTS or not texts.held_out:
        raise UserError(
            f"--{name} {' '.join(specs)}: {len(lines)} texts to train on and {len(texts.held_out)} "
            f"held out; a classifier needs at least {_MIN_TEXTS} and 1. Give more texts, or "
            "another --text-field, --held-out or --sample-bytes"
        )
    return Side(
        name=name,
        label=getattr(options, f"{name}_label"),
        lines=lines,
        held_out=texts.held_out,
        skipped=texts.skipped(),
    )


def _training_line(text: str) -> str:
    return _LABEL_WORD.sub("", line_of(text)).strip()


def train(sides: Iterable[Side], folder: Path, *, options: TrainClassifier) -> Path:
    """Train a model and return its file in a folder; equal texts and options give equal bytes.

    Raises:
        UserError: The fastText library is missing, or cannot make such a model.
    """
    lines = [f"{_PREFIX}{side.label} {line}\n" for side in sides for line in side.lines]
    random.Random(options.seed).shuffle(lines)
    texts, output = folder / "texts.txt", folder / "model.bin"
    with texts.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    try:
        model = _library().train_supervised(
            input=str(texts),
            epoch=options.epochs,
            lr=options.learning_rate,
            dim=options.dimensions,
            wordNgrams=options.word_ngrams,
            minn=min(1, options.character_ngrams),
            maxn=options.character_ngrams,
            bucket=options.buckets,
            minCount=options.min_count,
            seed=options.seed,
            thread=1,  # several threads would write to the same rows at once
            loss="softmax",
            verbose=0,
        )
        model.save_model(str(output))
    except (RuntimeError, ValueError, OSError) as error:
        raise UserError(
            f"fastText cannot train on these texts ({error}): give a lower --learning-rate, or "
            "other texts."
        ) from error
    return output


def _library() -> Any:
    try:
        return importlib.import_module("fasttext_new")
    except ImportError as error:
        raise UserError(
            f"fasttext-new, which trains the model, cannot be imported ({error}): pip install "
            "'corpusmill[fast]'."
        ) from error


def measure(model: Path, sides: Sequence[Side]) -> list[dict[str, float | None]]:
    """Return, for each bound, the shares of held-out texts that it keeps, scored as in a run.

    The precision is None if a bound keeps no texts.
    """
    positives, negatives = (_scores(model, sides[0].label, side.held_out) for side in sides)
    rows: list[dict[str, float | None]] = []
    for threshold in THRESHOLDS:
        kept = [int((scores >= np.float32(threshold)).sum()) for scores in (positives, negatives)]
        rows.append(
            {
                "threshold": threshold,
                "precision": round(kept[0] / sum(kept), 4) if sum(kept) else None,
                "recall": round(kept[0] / len(positives), 4),
                "negatives_kept": round(kept[1] / len(negatives), 4),
            }
        )
    return rows


def _scores(model: Path, label: str, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return the probability of a label for each text; 0 if the model knows no word of the text."""
    quality = QualityRules(ClassifierScorer([f"{model}:{label}"]).selection)
    (scores,) = quality.judge(texts, ["und"] * len(texts)).metrics.values()
    return np.nan_to_num(scores)


def _word_length(lines: Iterable[str]) -> float:
    """Return the average number of characters per word."""
    words = [word for line in lines for word in line.split()]
    return sum(map(len, words)) / max(len(words), 1)


if __name__ == "__main__":
    sys.exit(run_module("pipelines.train_classifier"))
