"""The error for a source whose first records all fail to parse, with the cause and a remedy."""

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
from shards.commands.output import quantity
from shards.commands.spelling import nearest
from shards.commands.table import called
from shards.errors import UserError

_EXCERPT, _TEXT = 240, 30
"""The maximum number of characters to show of a record, and of a text inside it."""

_RECORDS = 100
"""The maximum number of records whose fields are inspected."""

_MEANINGS = {
    "bad-json": "they contain no JSON object",
    "not-an-object": "they are JSON, but not objects",
    "truncated": "they end too early: fetch the files again",
    "bad-archive": "the archives are damaged: fetch them again",
    "bad-row-group": "the row groups are damaged: fetch the files again",
    "nul": "the texts contain NUL characters, like UTF-16 and binary files",
}


@dataclass
class UnreadableSource:
    """Collects the records of a source, none of which can be read."""

    corpus: Corpus
    source: str
    paths: list[str] = field(default_factory=list)
    """The paths of the files that contain the records."""
    reasons: Counter[str] = field(default_factory=Counter)
    """The number of records, by the reason why they are rejected."""
    bytes: int = 0
    """The approximate size of the records in bytes."""
    _example: Record | Damage | None = None
    _needed: Counter[str] = field(default_factory=Counter)
    """The number of records that were rejected because of each field."""
    _inspected: list[Record] = field(default_factory=list)

    @property
    def records(self) -> int:
        """The number of records."""
        return self.reasons.total()

    def add(self, path: str, item: Record | Damage, reason: str) -> None:
        """Count a record, and keep the first records so that their fields can be inspected."""
        if path not in self.paths:
            self.paths.append(path)
        self.reasons[reason] += 1
        self.bytes += max(item.length, item.size)
        self._example = self._example or item
        if isinstance(item, Damage):
            return
        if len(self._inspected) < _RECORDS:
            self._inspected.append(item)
        try:
            self.corpus.spec.documents(item.value, self.corpus.options)
        except Rejected as rejection:
            self._needed[rejection.field] += 1

    @cached_property
    def _fields(self) -> list[Field]:
        """The fields of the records: texts first, sorted by frequency and then by length."""

        def rank(field: Field) -> tuple[bool, float, float, str]:
            return field.types[0] != "text", -field.present, -field.chars, field.name

        return sorted(fields_of(self._inspected), key=rank)

    def error(self, *, whole: bool) -> UserError:
        """Return the error for the source.

        Args:
            whole: Whether the collected records are all records of the source.
        """
        reason, item = self._first
        others = len(self.paths) - 1
        more = f" and {quantity(others, 'more file')}" if others else ""
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
        """Return sentences that show the first record and explain why the records are rejected."""
        reason, item = self._first
        return (
            f"One of them is in {shown(self.paths[0])} at {_place(item)}: {_excerpt(item)}. The "
            f"reason: {self._cause(reason, item)}."
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
            reads = f" but probably in {encoding}" if encoding else ""
            return f"these records are not in UTF-8{reads}"
        if reason == "too-long":
            most = self.corpus.input_format.max_record_bytes
            return f"these records are longer than the {most} bytes of --max-record-bytes"
        return f"these records are {reason}: {_MEANINGS.get(reason, 'see docs/evidence.md')}"

    def _mismatch(self) -> str:
        """Return words on the field that the corpus needs and the fields that the records have."""
        have = f"these records have {listed([field.name for field in self._fields])}"
        needed = self._most_needed()
        name = self.corpus.spec.name
        if not needed:
            return f"these records lack what the corpus {name} needs: {have}"
        flag, given = self._flag(needed)
        ask = f"{flag} {given}" if flag else f"the corpus {name} needs the field {short(needed)}"
        kinds = {field.name: field.types[0] for field in self._fields}
        is_object = any(name.startswith(f"{given}.") for name in kinds)
        kind = "object" if is_object else kinds.get(given)
        instead = f"in these records its type is {kind}, not text; " if kind else ""
        return f"{ask}: {instead}{have}"

    def _remedy(self, reason: str, item: Record | Damage) -> str:
        if reason == "bad-utf8":
            encoding = other_encoding(item.head)
            how = f", as in: {iconv(encoding)}" if encoding else " from their encoding"
            return f"Convert the files to UTF-8{how}."
        if reason not in ("missing-field", "wrong-type") or not self._fields:
            return (
                f"Check the folder and the corpus: {called('look')} {shown(self.paths[0])} shows "
                "what the file contains."
            )
        if self.records == len(self.paths) and (shape := advice_on(self._inspected[0].value)):
            return f"{shape}."
        flag, given = self._flag(self._most_needed())
        texts = [field.name for field in self._fields if _may_be_text(field)]
        texts = [*nearest(given, texts), *texts]
        reads = self._corpus_of_them(texts)
        if flag:
            meant = f" Did you mean {flag} {short(texts[0])}?" if texts else ""
            other = f" {reads}." if reads else ""
            return f"Name the field that contains the text.{meant}{other}"
        field_given = f" --text-field {short(texts[0])}" if texts else ""
        return (
            f"{reads or 'If this is another corpus, use the command of that corpus'}; "
            f"{called('text')}{field_given} reads records with any fields."
        )

    def _corpus_of_them(self, texts: Sequence[str]) -> str:
        """Return a clause on the corpus whose command reads these records; "" if none does."""
        form = Peek(self.paths[0], self.corpus.input_format).format
        found = guess_corpora(
            self._inspected, forms={form}, text_field="".join(texts[:1]), path=self.paths[0]
        )
        known = found[0].corpus if found else ""
        if known in ("", "text", self.corpus.spec.name):
            return ""
        return f"{called(known.replace('_', '-'))} reads these records"

    def _most_needed(self) -> str:
        return max(self._needed, key=lambda name: self._needed[name], default="")

    def _flag(self, needed: str) -> tuple[str, str]:
        """Return the flag that names a field, and its value; if no flag does, "" and the field."""
        shared = {each.name for each in fields(Options)}
        options = self.corpus.options
        own = (each.name for each in fields(options) if each.name not in shared)
        for name in own:
            value = getattr(options, name)
            if needed and isinstance(value, str) and needed in (value, value.partition(".")[0]):
                return flag_of(name), value
        return "", needed


def _may_be_text(field: Field) -> bool:
    """Return whether a field may contain the text: most records have the field, with some text."""
    is_entry = any(part.isdecimal() for part in field.name.split("."))
    return field.chars > 0 and field.present >= MIN_PRESENT and not is_entry


def _place(item: Record | Damage) -> str:
    return f"{'byte' if item.length > 1 else 'number'} {item.offset:,}"


def _excerpt(item: Record | Damage) -> str:
    """Return a record on one line; the record and its texts are shortened."""
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
