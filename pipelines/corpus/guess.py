"""Which corpus records are of: each recipe reads them, and what it makes of them is the evidence.

A field *shapes* the text if without it the record is rejected or its text is another one; it is
*kept* if a column of the document holds its value. The more fields a recipe has a use for, the
better it fits; one that shapes no more than the field of the text has to keep a few, or to have its
name in the path, to be named before pipelines.text.
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
"""How many records each recipe reads, and of how many fields are taken away to see their use."""

MAX_TEXTS = 100

_MIN_READ = 0.5
_MANY_KEPT = 3
_PLAIN = "text"


@dataclass(frozen=True, kw_only=True)
class Guess:
    """The result of reading the records with one recipe."""

    corpus: str
    options: Options
    tried: int
    """Records that it was given."""
    read: int
    """Records that it made texts of."""
    shaping: tuple[str, ...]
    """Fields that its texts depend on."""
    kept: tuple[str, ...]
    """Fields that its columns hold."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Records that its own rules leave out, by reason."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Records that it quarantines, by reason."""
    texts: tuple[str, ...] = field(default=(), repr=False)
    """The first of its texts."""

    @property
    def spec(self) -> CorpusSpec:
        """The recipe."""
        return load_spec(f"pipelines.{self.corpus}")


def guess_corpora(
    records: Sequence[Record], *, forms: Collection[str], text_field: str, path: str
) -> list[Guess]:
    """Return the corpora whose recipes read most of the records, the best first.

    If none does, pipelines.text if it reads any.

    Args:
        records: Of the input.
        forms: The formats of their files.
        text_field: The field that holds the text, for pipelines.text.
        path: Where they come from: a corpus's own name in it counts.
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
    """Return the share of some records that a recipe makes texts of."""
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
    """Return the fields of a record that shape its texts, and those that its documents keep."""
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
