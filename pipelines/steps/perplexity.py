"""Scores texts by their perplexity under a KenLM model of their language, as cc_net does.

    --perplexity zh=zh.arpa.bin+zh.sp.model<=800
    --perplexity zh=zh.arpa.bin+zh.sp.model<=cutoff.csv:head

The text is normalised, split into SentencePiece pieces and scored as one sentence; the perplexity
is 10 ** (-score / (pieces + 1)), which is low for texts like those that the model was trained on.
All steps follow cc_net (https://github.com/facebookresearch/cc_net, cc_net/perplexity.py and
text_normalizer.py), so its models and its file of cutoffs have the same meaning here. cc_net's
buckets are bounds: `head` keeps the head, and `middle` keeps head and middle; they are the 30th and
the 60th percentile of the file.
"""

import csv
import importlib
import math
import unicodedata
from functools import lru_cache
from pathlib import Path
from sys import maxunicode
from typing import Any

from sentencepiece import SentencePieceProcessor

from pipelines.libraries import library_version
from pipelines.quality.selection import EVERY_LANGUAGE, VALUE
from pipelines.steps.fasttext import file_hash
from pipelines.steps.scorer import ModelMetric, Scorer, ScorerSpec
from shards.errors import UserError

FAMILY = "perplexity"

BUCKETS = {"head": 30, "middle": 60}
"""The percentile at the end of each bucket; the rest is the tail."""

_PUNCTUATION = {
    "，、": ",",
    "。": ".",
    "．": ". ",
    "„”“«»「」《》": '"',
    "´’": "'",
    "∶：": ":",
    "；": ";",
    "？": "?",
    "！": "!",
    "（": "(",
    "）": ")",
    "【": "[",
    "】": "]",
    "〈": "<",
    "〉": ">",
    "–━►": "-",
    "—": " - ",
    "～": "~",
    "…": "...",
    "％": "%",
}
"""Replacements of punctuation outside ASCII."""

_CONTROLS = (*range(32), *range(127, 160))
"""The removed characters. They include line breaks, so words around a line break are joined."""

_MAX_DIGITS = 38.0
"""The maximum decimal exponent of a perplexity, because a metric is a float32."""

_WRITE = (
    "Write LANG=KENLM+SENTENCEPIECE<=NUMBER, such as zh=zh.arpa.bin+zh.sp.model<=800, or instead "
    "of the number cutoff.csv:head, cutoff.csv:middle or cutoff.csv:PERCENTILE"
)


def normalise(text: str) -> str:
    """Return a text in lower case without accents, with 0 for every digit and ASCII punctuation.

    The rules are those of cc_net's text_normalizer.normalize().
    """
    return unicodedata.normalize("NFD", text.strip().lower()).translate(_table())


@lru_cache(maxsize=1)  # it tests every character
def _table() -> dict[int, str | None]:
    """Return the replacements of characters in a decomposed text; None deletes a character."""
    table: dict[int, str | None] = {}
    for code in range(maxunicode + 1):
        category = unicodedata.category(chr(code))
        if category == "Mn":
            table[code] = None
        elif category == "Nd":
            table[code] = "0"
    for characters, ascii_text in _PUNCTUATION.items():
        table |= dict.fromkeys(map(ord, characters), ascii_text)
    return table | dict.fromkeys(_CONTROLS)


class KenLM:
    """A KenLM language model with the SentencePiece model for its input."""

    def __init__(self, kenlm_path: Path, pieces_path: Path) -> None:
        """Load the models.

        Raises:
            UserError: A file is missing or is not such a model, or kenlm is not installed.
        """
        kenlm = _kenlm()
        config = kenlm.Config()
        config.show_progress = False
        config.arpa_complain = kenlm.ARPALoadComplain.NONE
        _check_file(kenlm_path, "a KenLM model, binary or ARPA")
        _check_file(pieces_path, "a SentencePiece model")
        try:
            self._model = kenlm.Model(str(kenlm_path), config)
        except (OSError, RuntimeError, ValueError) as error:
            raise UserError(
                f"{kenlm_path} is not a KenLM model ({_reason(error)}); expected a file that "
                "KenLM's lmplz or build_binary wrote."
            ) from error
        try:
            self._pieces = SentencePieceProcessor(model_file=str(pieces_path))
        except (OSError, RuntimeError) as error:
            raise UserError(
                f"{pieces_path} is not a SentencePiece model ({_reason(error)}); {_WRITE}."
            ) from error

        self.fingerprints = {
            "kenlm": file_hash(kenlm_path),
            "sentencepiece": file_hash(pieces_path),
        }
        """SHA-256 of each file."""

    def perplexity(self, text: str) -> float:
        """Return the perplexity of a text; NaN if normalisation removes the whole text."""
        line = normalise(text)
        if not line:
            return math.nan
        tokenized = " ".join(self._pieces.encode(line, out_type=str))
        score: float = self._model.score(tokenized)
        exponent = -score / (len(tokenized.split()) + 1)
        return math.pow(10.0, min(exponent, _MAX_DIGITS))


class PerplexityScorer(Scorer):
    """The language models of a run, by language; the column of scores is perplexity.value.

    The module's docstring shows specs. A source is a KenLM file and a SentencePiece file.
    """

    family, valid = FAMILY, (1.0, math.inf)
    conflict = " is another model for the same language: give one model per language."

    def _load(self, spec: ScorerSpec) -> ModelMetric:
        kenlm_name, plus, pieces_name = spec.source.rpartition("+")
        if not (kenlm_name and plus and pieces_name):
            raise UserError(f'"{spec.text}" does not name two files. {_WRITE}.')
        files = Path(kenlm_name), Path(pieces_name)
        model = self.models.get(files) or KenLM(*files)
        self.models[files] = model
        return ModelMetric(
            metric=VALUE,
            source=files,
            models=model.fingerprints,
            measure=lambda texts: [model.perplexity(text) for text in texts],
        )

    def _bound(self, spec: ScorerSpec) -> str:
        file, colon, part = spec.bound.rpartition(":")
        return _cutoff(spec, Path(file), part) if colon else spec.bound

    def _libraries(self) -> str:
        names = ("kenlm", "sentencepiece")
        return ", ".join(map(library_version, names))


def _kenlm() -> Any:
    try:
        return importlib.import_module("kenlm")
    except ImportError as error:
        raise UserError(
            f"--perplexity needs kenlm, which cannot be imported ({error}): pip install "
            "'corpusmill[quality]'. It is compiled as it is installed, which takes a minute and a "
            "C++ compiler (Debian, Ubuntu: apt-get install g++)."
        ) from error


def _check_file(path: Path, wanted: str) -> None:
    if not path.is_file():
        raise UserError(f"{path}: no such file; expected {wanted}. {_WRITE}.")


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _cutoff(spec: ScorerSpec, path: Path, part: str) -> str:
    """Return a cutoff of cc_net's file; the rows are percentiles, and the columns are languages."""
    if spec.language == EVERY_LANGUAGE:
        raise UserError(f'"{spec.text}": a cutoff file needs a language. {_WRITE}.')
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = [line for line in csv.reader(file) if line]
        percentile = float(BUCKETS.get(part, part))
        row = {float(line[0]): line for line in rows}[percentile]
        return row[header.index(spec.language, 1)]
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; expected cc_net's cutoff file.") from error
    except (KeyError, ValueError, IndexError, csv.Error) as error:
        raise UserError(
            f"{path} has no cutoff for {spec.language} at {part}: expected cc_net's cutoff file, "
            "with one row per percentile, which is in the first column, and one column per "
            "language."
        ) from error
