"""Guesses which corpus can read some records by trying each corpus.

A field *shapes* the text if the record without the field is rejected or has a different text; a
field is *kept* if a column of the document contains its value. The more fields a corpus uses, the
better it fits. If only one field shapes the texts of a corpus, the corpus ranks above
pipelines.text only if it keeps several fields or the path contains its name.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.corpus.document import Document, Rejected
from pipelines.corpus.options import Options
from pipelines.corpus.sources import Corpus
from pipelines.corpus.spec import CORPORA, CorpusSpec, load_spec
from pipelines.read.record import Record
from pipelines.read.value import as_text

RECORDS_READ, RECORDS_TAKEN_APART = 400, 20
"""The number of records to read with each corpus, and how many of these to also read with each
field removed."""

MAX_TEXTS = 100

_MIN_READ = 0.5
_MANY_KEPT = 3
_PLAIN = "text"


@dataclass(frozen=True, kw_only=True)
class Guess:
    """The result of reading some records with one corpus."""

    corpus: str
    options: Options
    tried: int
    """The number of records on which the corpus was tried."""
    read: int
    """The number of records from which the corpus makes a text."""
    shaping: tuple[str, ...]
    """The fields that the texts depend on."""
    kept: tuple[str, ...]
    """The fields whose values the columns contain."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """The number of records that the corpus drops, by reason."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """The number of records that the corpus quarantines, by reason."""
    texts: tuple[str, ...] = field(default=(), repr=False)
    """The first texts that the corpus makes."""

    @property
    def spec(self) -> CorpusSpec:
        """The description of the corpus."""
        return load_spec(f"pipelines.{self.corpus}")


def guess_corpora(
    records: Sequence[Record], *, forms: Collection[str], text_field: str, path: str
) -> list[Guess]:
    """Return the corpora that can read most of the records, the best first.

    If no corpus can, return pipelines.text, provided that it can read some records.

    Args:
        records: The first records of the input.
        forms: The formats of the files.
        text_field: The field that contains the text, for pipelines.text.
        path: The path of the input; a corpus whose name is in the path ranks higher.
    """
    found = []
    for corpus in CORPORA:
        spec = load_spec(f"pipelines.{corpus}")
        plain: dict[str, Any] = {"text_field": text_field} if corpus == _PLAIN else {}
        options = spec.options(**plain)
        form = Corpus(f"pipelines.{corpus}", options).input_format.format
        if (form == "auto" or {form} == {*forms}) and (text_field or not plain):
            found.append(_tried(spec, options, records[:RECORDS_READ]))
    fitting = [guess for guess in found if guess.read >= _MIN_READ * guess.tried > 0]
    fitting = fitting or [guess for guess in found if guess.corpus == _PLAIN and guess.read]
    return sorted(fitting, key=lambda guess: _rank(guess, path), reverse=True)


def read_share(guess: Guess, records: Sequence[Record]) -> float:
    """Return the share of some records that the corpus of a guess can read."""
    tried = _tried(guess.spec, guess.options, records[:RECORDS_READ])
    return tried.read / max(1, tried.tried)


def _rank(guess: Guess, path: str) -> tuple[float, ...]:
    kept = len(guess.kept)
    named = guess.corpus.replace("_", "") in path.lower().replace("_", "").replace("-", "")
    is_plain = guess.corpus == _PLAIN
    return (
        round(guess.read / guess.tried, 1),
        len(guess.shaping),
        kept if kept >= _MANY_KEPT and not is_plain else 0,
        named and not is_plain,
        is_plain,
    )


def _tried(spec: CorpusSpec, options: Options, records: Sequence[Record]) -> Guess:
    dropped, rejected = Counter[str](), Counter[str]()
    shaping, kept, texts, read = set[str](), set[str](), list[str](), 0
    for index, record in enumerate(records):
        try:
            documents = spec.documents(record.value, options)
        except Rejected as reason:
            rejected[str(reason)] += 1
            continue
        made = [document for document in documents if document.text.strip()]
        read += bool(made)
        if not any(document.reason is None for document in documents):
            dropped[documents[0].reason or ""] += 1
        texts += [document.prompt + document.text for document in made]
        if made and index < RECORDS_TAKEN_APART:
            uses = _uses(spec, options, record.value, documents)
            shaping.update(uses[0])
            kept.update(uses[1])
    taken_apart = records[:RECORDS_TAKEN_APART]
    names = dict.fromkeys(name for record in taken_apart for name in record.value)
    return Guess(
        corpus=spec.name,
        options=options,
        tried=len(records),
        read=read,
        shaping=tuple(name for name in names if name in shaping),
        kept=tuple(name for name in names if name in kept and name not in shaping),
        dropped=dict(dropped.most_common()),
        rejected=dict(rejected.most_common()),
        texts=tuple(texts[:MAX_TEXTS]),
    )


def _uses(
    spec: CorpusSpec, options: Options, record: Mapping[str, Any], made: Sequence[Document]
) -> tuple[list[str], list[str]]:
    """Return the fields of a record that shape its texts, and those that are kept."""
    shaping, kept = list[str](), list[str]()
    columns = [value for document in made for value in document.provenance.values()]
    for name, value in record.items():
        rest = {other: held for other, held in record.items() if other != name}
        try:
            without = _essence(spec.documents(rest, options))
        except Rejected:
            without = []
        if without != _essence(made):
            shaping.append(name)
        elif (text := as_text(value)) and (value in columns or text in columns):
            kept.append(name)
    return shaping, kept


def _essence(documents: Sequence[Document]) -> list[tuple[str, str]]:
    return [(document.prompt, document.text) for document in documents]
