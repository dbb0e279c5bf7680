"""Checks that the first records of each source have the fields that options name.

Without this check a field that no record has would become an empty column, and a blocklist would
block nothing, without any message. The field must be in one of the first records, since many fields
are not in every record. If there are several sources, one must have the field, and the log names
those that do not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from pipelines.corpus.fields import value_at
from pipelines.corpus.sources import Corpus
from pipelines.read.fields import fields_of, listed, short
from pipelines.read.input_file import shown
from pipelines.read.record import Damage, Record
from pipelines.read.value import as_text
from pipelines.steps.blocklist import has_site
from shards.commands.spelling import nearest
from shards.commands.table import called
from shards.errors import UserError

_ABSENT = object()

_RECORDS = 100
"""The maximum number of records whose fields a message lists."""


@dataclass
class FieldCheck:
    """The requested fields that have not been found yet in the first records of a source."""

    corpus: Corpus
    source: str
    missing: dict[str, str] = field(default_factory=dict)
    """The missing fields, each with the flag and value that name it."""
    needs_url: bool = False
    """Whether a blocklist is given, and no document has had a URL yet."""
    path: str = ""
    """The path of the first file."""
    records: int = 0
    """The number of records that were checked."""
    bytes: int = 0
    """The approximate size of these records in the files."""
    url: str = ""
    """The first value of the column url that is not empty."""
    _checked: list[Record] = field(default_factory=list)

    @classmethod
    def of(cls, corpus: Corpus, source: str) -> "FieldCheck":
        """Return a check of the fields that the options of a source's corpus name."""
        missing = dict(corpus.spec.named_fields(corpus.options))
        return cls(corpus, source, missing, needs_url=bool(corpus.options.url_blocklist))

    @property
    def is_open(self) -> bool:
        """Whether a field or a URL has not been found yet."""
        return self.needs_url or bool(self.missing)

    def add(self, path: str, item: Record | Damage, documents: pa.RecordBatch) -> None:
        """Check a record and the documents that were made from it."""
        if not self.is_open or isinstance(item, Damage):
            return
        self.path = self.path or path
        self.records += 1
        self.bytes += max(item.length, item.size)
        if len(self._checked) < _RECORDS:
            self._checked.append(item)
        for name in [*self.missing]:
            if value_at(item.value, name, _ABSENT) is not _ABSENT:
                del self.missing[name]
        if self.needs_url:
            urls = [as_text(url) for url in documents["url"].to_pylist()]
            self.url = self.url or next(filter(None, urls), "")
            self.needs_url = not any(map(has_site, urls))

    def fields_error(self) -> UserError:
        """Return the error about the first missing field, which lists the existing fields."""
        name, words = next(iter(self.missing.items()))
        flag, given = words.split(" ", 1)
        column = "" if flag == "--id-field" else f"{given.rpartition('=')[0] or name}="
        near = "".join(nearest(name, self._names, most=1))
        meant = f"Did you mean {flag} {column}{near}? " if near else ""
        return UserError(
            f"{words}: there is no field {short(name)} in {self._which}. They have "
            f"{listed(self._names)}. {meant}Give the name of an existing field, with dots for "
            f"a field in a field, or leave {short(name)} out of {flag}."
        )

    def url_error(self) -> UserError:
        """Return the error that says why a blocklist would block nothing."""
        value = f"it contains {shown(short(self.url))!r}" if self.url else "it is empty"
        return UserError(
            f"--url-blocklist: the column url has no URL in {self._which}: {value}. So the list "
            f"would block nothing. The records have {listed(self._names)}. The column must contain "
            f"URLs such as https://example.org/page; {called('text')} fills it with --provenance "
            "url=FIELD."
        )

    def warnings(self) -> list[str]:
        """Return warnings about the fields that the records lack."""
        lacks = [
            f"{words}: there is no field {short(name)} in {self._which}; the column is empty there"
            for name, words in self.missing.items()
        ]
        if self.needs_url:
            lacks.append(f"--url-blocklist blocks nothing in {self._which}: url is empty there")
        return lacks

    @property
    def _which(self) -> str:
        first = f"the first {self.records:,} records" if self.records > 1 else "the first record"
        return f"{first} of the source {self.source!r} ({shown(self.path)})"

    @property
    def _names(self) -> list[str]:
        return [field.name for field in fields_of(self._checked)]


def check_fields(found: Sequence[FieldCheck], *, known: frozenset[str]) -> list[str]:
    """Check that the first records of all sources have the fields that options name.

    Args:
        found: The check of each source.
        known: The sources that the dataset already has. A few records of these sources may lack a
            field or, if there is a blocklist, a URL.

    Returns:
        Warnings about fields that some sources lack.

    Raises:
        UserError: No source has a field, or the URLs of a source are missing.
    """
    found = [wanted for wanted in found if wanted.records]
    for wanted in found:
        same = [other for other in found if other.corpus == wanted.corpus]
        everywhere = [name for name in wanted.missing if all(name in o.missing for o in same)]
        if everywhere and wanted.source not in known:
            wanted.missing = {name: wanted.missing[name] for name in everywhere}
            raise wanted.fields_error()
        is_known = wanted.source in known and not wanted.missing
        if wanted.needs_url and (wanted.url or not is_known):
            raise wanted.url_error()
    return [warning for wanted in found for warning in wanted.warnings()]
