"""The perplexity of a text by a KenLM model of its language, as in cc_net.

    --perplexity zh=zh.arpa.bin+zh.sp.model<=800
    --perplexity zh=zh.arpa.bin+zh.sp.model<=cutoff.csv:head

The text is normalised, cut into SentencePiece's pieces and scored as one sentence; the figure is
10 ** (-score / (pieces + 1)), a low one for a text like those that the model was trained on. All of
it follows cc_net (https://github.com/facebookresearch/cc_net, cc_net/perplexity.py and
text_normalizer.py), so that its models and its file of cutoffs mean here what they mean there.
cc_net's three parts of a language are bounds: head is what stays with `head`, head and middle what
stays with `middle`, the 30th and 60th percentile of the file.
"""

import csv
import importlib
import importlib.metadata
import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from sys import maxunicode
from typing import Any

import numpy as np
import numpy.typing as npt
from sentencepiece import SentencePieceProcessor

from pipelines.quality.profile import Rule
from pipelines.quality.scored import (
    VALUE,
    Spec,
    bound_profile,
    described,
    engine,
    file_hash,
    join_bounds,
    parse_spec,
    reasons_of,
)
from pipelines.quality.selection import EVERY, BoundProfile, rules_for
from pipelines.quality.verdict import places_of
from shards.errors import UserError

FAMILY = "perplexity"
COLUMN = f"{FAMILY}.{VALUE}"

PARTS = {"head": 30, "middle": 60}
"""The percentile that ends each part; the tail follows."""

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
"""What stands for punctuation outside ASCII."""

_CONTROLS = (*range(32), *range(127, 160))
"""Left out, line breaks among them: a text becomes one sentence, words at breaks become one."""

_MOST_DIGITS = 38.0
"""Before the point: what a float32 can hold."""

_WRITE = (
    "Write LANG=KENLM+SENTENCEPIECE<=NUMBER, such as zh=zh.arpa.bin+zh.sp.model<=800, or in place "
    "of the number cutoff.csv:head, cutoff.csv:middle or cutoff.csv:PERCENTILE"
)


def normalise(text: str) -> str:
    """Return a text in lower case without accents, its digits 0, its punctuation ASCII.

    The rules are those of cc_net's text_normalizer.normalize().
    """
    return unicodedata.normalize("NFD", text.strip().lower()).translate(_table())


@lru_cache(maxsize=1)  # it looks at every character
def _table() -> dict[int, str | None]:
    """Return what stands for a character of a decomposed text; None: nothing."""
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


class Model:
    """A language model with its pieces."""

    def __init__(self, kenlm_path: Path, pieces_path: Path) -> None:
        """Load it.

        Raises:
            UserError: a file is missing or another one, or kenlm is not installed.
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
                f"{kenlm_path} is no KenLM model ({_reason(error)}); expected one that KenLM's "
                "lmplz or build_binary wrote."
            ) from error
        try:
            self._pieces = SentencePieceProcessor(model_file=str(pieces_path))
        except (OSError, RuntimeError) as error:
            raise UserError(
                f"{pieces_path} is no SentencePiece model ({_reason(error)}); {_WRITE}."
            ) from error

        self.fingerprints = {
            "kenlm": file_hash(kenlm_path),
            "sentencepiece": file_hash(pieces_path),
        }
        """SHA-256 of each file."""

    def perplexity(self, text: str) -> float:
        """Return the perplexity of a text; NaN if nothing is left of it."""
        line = normalise(text)
        if not line:
            return math.nan
        tokenized = " ".join(self._pieces.encode(line, out_type=str))
        score: float = self._model.score(tokenized)
        exponent = -score / (len(tokenized.split()) + 1)
        return math.pow(10.0, min(exponent, _MOST_DIGITS))


@dataclass(frozen=True, kw_only=True)
class _Own:
    """What is asked for one language."""

    files: tuple[Path, Path]
    """Of KenLM and of SentencePiece."""
    bounds: dict[str, float] = field(default_factory=dict)


class Perplexity:
    """The language models of a run: a scorer."""

    def __init__(self, specs: Iterable[str]) -> None:
        """Load the models.

        Args:
            specs: As in the module's docstring.

        Raises:
            UserError: a spec or a file is none, or a language or a bound is given twice.
        """
        self._models: dict[tuple[Path, Path], Model] = {}
        self._own: dict[str, _Own] = {}
        for text in specs:
            self._add(parse_spec(text))
        self._selection: dict[str, tuple[BoundProfile, ...]] = {
            language: (bound_profile(FAMILY, own.bounds),) for language, own in self._own.items()
        }
        self.columns: tuple[str, ...] = (COLUMN,)
        """The name of its metric column."""
        self.reasons = reasons_of(self._selection)
        """Every reason that it may give."""

    def _add(self, spec: Spec) -> None:
        kenlm_name, plus, pieces_name = spec.source.rpartition("+")
        if not (kenlm_name and plus and pieces_name):
            raise UserError(f'"{spec.text}" does not name two files. {_WRITE}.')
        files = Path(kenlm_name), Path(pieces_name)
        own = self._own.setdefault(spec.language, _Own(files=files))
        if own.files != files:
            raise UserError(
                f'"{spec.text}" is another model for the same language: give one for each.'
            )
        join_bounds(own.bounds, spec.limit(VALUE, _bound(spec)), spec)
        if files not in self._models:
            self._models[files] = Model(*files)

    @property
    def facts(self) -> Mapping[str, Any]:
        """By language the hashes of both files, and the bounds."""
        entries = {
            language: {
                "models": self._models[own.files].fingerprints,
                "bounds": described(own.bounds),
            }
            for language, own in sorted(self._own.items())
        }
        return {FAMILY: entries}

    @property
    def engines(self) -> Mapping[str, str]:
        """The libraries that decide the figures, with their versions and a mark of the models."""
        names = ("kenlm", "sentencepiece")
        versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
        return {FAMILY: engine(versions, self.facts)}

    def rules(self, language: str) -> tuple[Rule, ...]:
        """Return the rules for texts of a language."""
        return rules_for(self._selection, language)

    def score(
        self, texts: Sequence[str], languages: Sequence[str]
    ) -> dict[str, npt.NDArray[np.float32]]:
        """Return the perplexity of texts in these languages, NaN without a model, as float32[n]."""
        values = np.full(len(texts), np.nan, np.float32)
        for language, places in places_of(languages).items():
            own = self._own.get(language) or self._own.get(EVERY)
            if own is not None:
                model = self._models[own.files]
                values[places] = [model.perplexity(texts[place]) for place in places]
        return {COLUMN: values}


def absolute(spec: str, folder: Path) -> str:
    """Return a spec with the paths of its files absolute, if they were relative to a folder."""
    parsed = parse_spec(spec)
    kenlm_name, _, pieces_name = parsed.source.rpartition("+")
    file, colon, part = parsed.bound.rpartition(":")
    bound = f"{folder / file}:{part}" if colon else parsed.bound
    return parsed.written(f"{folder / kenlm_name}+{folder / pieces_name}", bound)


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


def _bound(spec: Spec) -> float:
    """Return the bound of a spec: a number, or one of a file of cutoffs."""
    if not spec.bound:
        return math.nan
    file, colon, part = spec.bound.rpartition(":")
    if colon:
        return _cutoff(spec, Path(file), part)
    try:
        number = float(spec.bound)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise UserError(f'"{spec.text}": "{spec.bound}" is no perplexity above 0. {_WRITE}.')
    return number


def _cutoff(spec: Spec, path: Path, part: str) -> float:
    """Return a cutoff of cc_net's file: a row for each percentile, a column for each language."""
    if spec.language == EVERY:
        raise UserError(f'"{spec.text}": a file of cutoffs needs a language. {_WRITE}.')
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = [line for line in csv.reader(file) if line]
        percentile = float(PARTS.get(part, part))
        row = {float(line[0]): line for line in rows}[percentile]
        number = float(row[header.index(spec.language, 1)])
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; expected cc_net's file of cutoffs.") from error
    except (KeyError, ValueError, IndexError, csv.Error) as error:
        raise UserError(
            f"{path} has no cutoff of {spec.language} at {part}: expected cc_net's file, a row for "
            "each percentile, whose number comes first, and a column for each language."
        ) from error
    if not 0 < number < math.inf:
        raise UserError(f"{path}: the cutoff of {spec.language} at {part}, {number}, is no bound.")
    return number
