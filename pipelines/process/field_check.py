"""The fields that options name: of each source the first records have them, or the run ends.

A field that no record has would be an empty column, and a list of addresses would block nothing,
without a word. One of the first records suffices: many fields are not in every record. With several
sources one of them is enough as well, and the log names the others.
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
"""The number of records whose fields a message names."""


@dataclass
class FieldCheck:
    """Fields and metrics that the first records of a source have not shown yet."""

    corpus: Corpus
    source: str
    missing: dict[str, str] = field(default_factory=dict)
    """By field, the flag and the value that name it."""
    needs_url: bool = False
    """Whether no document had an address so far that a list could block."""
    path: str = ""
    """The first file."""
    records: int = 0
    """How many were looked at."""
    bytes: int = 0
    """About how much of the files they take up."""
    url: str = ""
    """The first that is not empty."""
    _looked_at: list[Record] = field(default_factory=list)

    @classmethod
    def of(cls, corpus: Corpus, source: str) -> "FieldCheck":
        """Return the fields that the options of a source's corpus name."""
        missing = dict(corpus.spec.named_fields(corpus.options))
        return cls(corpus, source, missing, needs_url=bool(corpus.options.url_blocklist))

    @property
    def is_open(self) -> bool:
        """Whether something has not been seen yet."""
        return self.needs_url or bool(self.missing)

    def look(self, path: str, item: Record | Damage, documents: pa.RecordBatch) -> None:
        """Look at a record and at the documents that were made of it."""
        if not self.is_open or isinstance(item, Damage):
            return
        self.path = self.path or path
        self.records += 1
        self.bytes += max(item.length, item.size)
        if len(self._looked_at) < _RECORDS:
            self._looked_at.append(item)
        for name in [*self.missing]:
            if value_at(item.value, name, _ABSENT) is not _ABSENT:
                del self.missing[name]
        if self.needs_url:
            urls = [as_text(url) for url in documents["url"].to_pylist()]
            self.url = self.url or next(filter(None, urls), "")
            self.needs_url = not any(map(has_site, urls))

    def fields_error(self) -> UserError:
        """Return the error that names the first field that is missing, and those that are there."""
        name, words = next(iter(self.missing.items()))
        flag, given = words.split(" ", 1)
        column = "" if flag == "--id-field" else f"{given.rpartition('=')[0] or name}="
        near = "".join(nearest(name, self._names, most=1))
        meant = f"Did you mean {flag} {column}{near}? " if near else ""
        return UserError(
            f"{words}: there is no field {short(name)} in {self._which}. These have "
            f"{listed(self._names)}. {meant}Give the name of a field that is there, with dots for "
            f"a field in a field, or leave {short(name)} out of {flag}."
        )

    def url_error(self) -> UserError:
        """Return the error that says why a list of addresses would block nothing."""
        value = f"it holds {shown(short(self.url))!r}" if self.url else "it is empty"
        return UserError(
            f"--url-blocklist: the column url has no address in {self._which}: {value}. So the "
            f"list would block nothing. The records have {listed(self._names)}. The column has to "
            f"hold addresses as text, such as https://example.org/page: {called('text')} fills it "
            "with --provenance url=FIELD."
        )

    def warnings(self) -> list[str]:
        """Return the fields that the records lack, for the log."""
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
        return [field.name for field in fields_of(self._looked_at)]


def check_fields(found: Sequence[FieldCheck], *, known: frozenset[str]) -> list[str]:
    """Check that the first records of all sources had what their options name.

    Args:
        found: The fields that they did not show, by source.
        known: Sources that the dataset has already: a few records of them may lack a field, and
            with a list of addresses the value of their url.

    Returns:
        What to warn of: fields that some sources lack.

    Raises:
        UserError: A field is in no source, or a source has no address to block.
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
