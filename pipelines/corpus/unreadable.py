"""The error message for a source whose records all fail to parse: why, and their fields."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from pipelines.corpus.document import Rejected
from pipelines.corpus.guess import guess_corpora
from pipelines.corpus.options import Options
from pipelines.corpus.sources import Corpus
from pipelines.read.encoding import iconv, other_encoding
from pipelines.read.fields import MIN_PRESENT, Field, fields_of, listed, short
from pipelines.read.input_file import shown
from pipelines.read.peek import Peek
from pipelines.read.record import Damage, Record
from pipelines.read.shape import advice_on
from shards.commands.flags import flag_of
from shards.commands.spelling import nearest
from shards.commands.table import called
from shards.errors import UserError

_EXCERPT, _TEXT = 240, 30
"""Most characters shown of a record, and of a text in it."""

_RECORDS = 100
"""Records whose fields are inspected."""

_MEANINGS = {
    "bad-json": "they contain no JSON object",
    "not-an-object": "they are JSON, but no objects with fields",
    "truncated": "they end too early: fetch the files again",
    "bad-archive": "the archives are damaged: fetch them again",
    "bad-row-group": "the row groups are damaged: fetch the files again",
    "nul": "the texts hold NUL characters, as UTF-16 and files that are no text do",
}


@dataclass
class UnreadableSource:
    """Records of a source none of which could be read."""

    corpus: Corpus
    source: str
    paths: list[str] = field(default_factory=list)
    """Of the files that hold them."""
    reasons: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    """About how much of the files they take up."""
    _example: Record | Damage | None = None
    _asked: Counter[str] = field(default_factory=Counter)
    """By field, how many records were rejected because of it."""
    _looked_at: list[Record] = field(default_factory=list)

    @property
    def records(self) -> int:
        """How many there are."""
        return self.reasons.total()

    def add(self, path: str, item: Record | Damage, reason: str) -> None:
        """Count a record, and look at its fields."""
        if path not in self.paths:
            self.paths.append(path)
        self.reasons[reason] += 1
        self.bytes += max(item.length, item.size)
        self._example = self._example or item
        if isinstance(item, Damage):
            return
        if len(self._looked_at) < _RECORDS:
            self._looked_at.append(item)
        try:
            self.corpus.spec.documents(item.value, self.corpus.options)
        except Rejected as rejection:
            self._asked[rejection.field] += 1

    @cached_property
    def _fields(self) -> list[Field]:
        """The fields of the records: texts first, then by how often they are there, then length."""

        def rank(field: Field) -> tuple[bool, float, float, str]:
            return field.types[0] != "text", -field.present, -field.chars, field.name

        return sorted(fields_of(self._looked_at), key=rank)

    def error(self, *, whole: bool) -> UserError:
        """Return the error that names all this.

        Args:
            whole: Whether these are all records of the source.
        """
        reason, item = self._first
        others = len(self.paths) - 1
        more = f" and {others} more file{'s' * (others > 1)}" if others else ""
        counts = ", ".join(f"{rows:,} {name}" for name, rows in self.reasons.most_common(3))
        go_on = " To continue anyway, leave this source out of --input, or give --max-reject-rate 1"
        return UserError(
            f"{self._cause(reason, item)}. So nothing of the source {self.source!r} can be read: "
            f"{'all' if whole else 'the first'} {self.records:,} records, of "
            f"{shown(self.paths[0])}{more}, are rejected ({counts}). The first one, at "
            f"{_place(item)}: {_excerpt(item)}. {self._remedy(reason, item)}"
            f"{go_on if self.corpus.options.max_reject_rate < 1 else ''}"
        )

    def example(self) -> str:
        """Return sentences that show the first of the records, and say what is wrong with them."""
        reason, item = self._first
        return (
            f"One of them is in {shown(self.paths[0])} at {_place(item)}: {_excerpt(item)}. Why: "
            f"{self._cause(reason, item)}."
        )

    @property
    def _first(self) -> tuple[str, Record | Damage]:
        """The most frequent reason, and the first record."""
        assert self._example is not None
        ((reason, _),) = self.reasons.most_common(1)
        return reason, self._example

    def _cause(self, reason: str, item: Record | Damage) -> str:
        if self._fields and reason in ("missing-field", "wrong-type"):
            return self._mismatch()
        if reason == "bad-utf8":
            encoding = other_encoding(item.head)
            reads = f", and read as {encoding} does" if encoding else ""
            return f"these records are not in UTF-8{reads}"
        if reason == "too-long":
            most = self.corpus.input_format.max_record_bytes
            return f"these records have more bytes than --max-record-bytes {most} allows"
        return f"these records are {reason}: {_MEANINGS.get(reason, 'see docs/evidence.md')}"

    def _mismatch(self) -> str:
        """Return the field that the options name, and the fields that there are."""
        have = f"these records have {listed([field.name for field in self._fields])}"
        asked = self._most_asked()
        name = self.corpus.spec.name
        if not asked:
            return f"the corpus {name} does not find in these records what it needs: {have}"
        flag, given = self._flag(asked)
        ask = f"{flag} {given}" if flag else f"the corpus {name} needs the field {short(asked)}"
        kinds = {field.name: field.types[0] for field in self._fields}
        is_object = any(name.startswith(f"{given}.") for name in kinds)
        kind = "object" if is_object else kinds.get(given)
        instead = f"in these records it is of type {kind}, not text; " if kind else ""
        return f"{ask}: {instead}{have}"

    def _remedy(self, reason: str, item: Record | Damage) -> str:
        if reason == "bad-utf8":
            encoding = other_encoding(item.head)
            how = f", as in: {iconv(encoding)}" if encoding else " from the encoding that they have"
            return f"Convert the files to UTF-8{how}."
        if reason not in ("missing-field", "wrong-type") or not self._fields:
            return (
                f"Is it the right folder, and the right corpus? {called('look')} "
                f"{shown(self.paths[0])} says what there is."
            )
        if self.records == len(self.paths) and (shape := advice_on(self._looked_at[0].value)):
            return f"{shape}."
        flag, given = self._flag(self._most_asked())
        texts = [field.name for field in self._fields if _may_be_text(field)]
        texts = [*nearest(given, texts), *texts]
        reads = self._corpus_of_them(texts)
        if flag:
            meant = f" Did you mean {flag} {short(texts[0])}?" if texts else ""
            other = f" {reads}." if reads else ""
            return f"Give the field that holds the text.{meant}{other}"
        field_given = f" --text-field {short(texts[0])}" if texts else ""
        return (
            f"{reads or 'If this is another corpus, give it to its own command'}; "
            f"{called('text')}{field_given} reads records with any fields."
        )

    def _corpus_of_them(self, texts: Sequence[str]) -> str:
        """Return which other corpus these records are of; empty if they look like none."""
        form = Peek(self.paths[0], self.corpus.input_format).format
        found = guess_corpora(
            self._looked_at, forms={form}, text_field="".join(texts[:1]), path=self.paths[0]
        )
        known = found[0].corpus if found else ""
        if known in ("", "text", self.corpus.spec.name):
            return ""
        return f"{called(known.replace('_', '-'))} reads these records"

    def _most_asked(self) -> str:
        return max(self._asked, key=lambda name: self._asked[name], default="")

    def _flag(self, asked: str) -> tuple[str, str]:
        """Return the flag whose value is the field asked for, and that value; empty if none is."""
        shared = {each.name for each in fields(Options)}
        options = self.corpus.options
        own = (each.name for each in fields(options) if each.name not in shared)
        for name in own:
            value = getattr(options, name)
            if asked and isinstance(value, str) and asked in (value, value.partition(".")[0]):
                return flag_of(name), value
        return "", asked


def _may_be_text(field: Field) -> bool:
    """Return whether a field may be that of the text: no document is lost if it is taken."""
    is_entry = any(part.isdecimal() for part in field.name.split("."))
    return field.chars > 0 and field.present >= MIN_PRESENT and not is_entry


def _place(item: Record | Damage) -> str:
    return f"{'byte' if item.length > 1 else 'number'} {item.offset:,}"


def _excerpt(item: Record | Damage) -> str:
    """Return a record on one line, its texts and itself cut short."""
    if isinstance(item, Damage):
        head = item.head[: 4 * _EXCERPT]
        encoding = other_encoding(head) or "utf-8"
        text = head.decode(encoding.split()[0], errors="replace")
    else:
        text = json.dumps(_cut(item.value), ensure_ascii=False, default=repr)
    return f"{shown(short(' '.join(text.split()), most=_EXCERPT))}"


def _cut(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {short(str(name)): _cut(inner) for name, inner in value.items()}
    return short(value, most=_TEXT) if isinstance(value, str) else value
