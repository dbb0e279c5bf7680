"""A corpus of any texts: JSON lines, JSON arrays or Parquet with a text field, or plain text."""

import functools
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import pyarrow as pa

from pipelines.corpus import (
    SEGMENTS,
    CorpusSpec,
    Document,
    InputFormat,
    Options,
    Rejected,
    as_text,
    count,
    names,
    option,
)
from pipelines.corpus.fields import joined_text, value_at
from pipelines.job.command import main
from pipelines.read.input_format import BuiltinFormat
from pipelines.read.names import TEXT_FILES
from pipelines.segments.audit import AUDIT
from pipelines.segments.rows import CLEAN, DOCUMENT_SCHEMA
from pipelines.segments.unknown import UNKNOWN
from shards.errors import UserError

RESERVED_COLUMNS = frozenset(
    {
        *DOCUMENT_SCHEMA.names,
        *AUDIT.names,
        CLEAN.name,
        "id",
        "offset",
        "prompt_tokens",
        UNKNOWN,
        "start",
        "hash_high",
        "hash_low",
    }
)
"""Names of the columns that documents already have, in segments or in shards."""


@dataclass(frozen=True, kw_only=True)
class TextOptions(Options):
    """The options of pipelines.text."""

    text_field: str = option("text", affects=SEGMENTS, metavar="NAME")
    """Field with the text; meta.body is the field body inside meta. A list of texts becomes one
    text with line feeds between them: paragraphs.body joins the body of all paragraphs."""
    id_field: str = option("id", affects=SEGMENTS, metavar="NAME")
    """Field that identifies a record, which is kept as id."""
    provenance: tuple[str, ...] = option((), affects=SEGMENTS, metavar="LIST", type=names)
    """Further fields to keep with each document: FIELD, or COLUMN=FIELD to rename it."""
    format: str = option("auto", affects=SEGMENTS, choices=("auto", *get_args(BuiltinFormat)))
    """Format of the files: an array of objects (json), one object per line (jsonl), objects that
    span several lines (objects), one text per line (lines), one text per file (file), parquet or
    arrow. auto decides by each file's name or first bytes."""
    newline: str = option("", affects=SEGMENTS, metavar="TEXT")
    """Marker of a line break in plain text, such as '<n>'."""
    min_chars: int = option(1, affects=SEGMENTS, metavar="N", type=count)
    """Minimum number of characters per document."""

    def __post_init__(self) -> None:
        super().__post_init__()
        columns = [name for name, _ in _columns(self.provenance)]
        for name in columns:
            if (
                name in RESERVED_COLUMNS
                or columns.count(name) > 1
                or not re.fullmatch(r"[A-Za-z]\w*", name)
            ):
                raise UserError(
                    f"--provenance: a column cannot be called {name!r}, which is taken or invalid; "
                    f"choose another, as in from_{name.lower()}=FIELD"
                )
        if self.format in ("lines", "file") and self.text_field != "text":
            raise UserError(
                f"--text-field has no meaning with --format {self.format}; leave it out"
            )


@functools.lru_cache(maxsize=8)  # called for each record
def _columns(provenance: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the name and field of each column."""
    pairs = [item.rpartition("=") for item in provenance]
    return [(name or field.replace(".", "_"), field) for name, _, field in pairs]


def documents(record: Mapping[str, Any], options: TextOptions) -> tuple[Document]:
    """Return the document of one record."""
    value = value_at(record, options.text_field)
    if value is None:
        raise Rejected("missing-field", options.text_field)
    text = value if isinstance(value, str) else joined_text(value, options.text_field)
    origin = {"id": as_text(value_at(record, options.id_field))}
    for name, field in _columns(options.provenance):
        origin[name] = as_text(value_at(record, field))
    return (Document(text, origin, "too-short" if len(text) < options.min_chars else None),)


def _input_format(options: TextOptions) -> InputFormat:
    form: Any = options.format
    outer = options.text_field.partition(".")[0]
    kept = [field for _, field in _columns(options.provenance)]
    return InputFormat(
        format=form,
        text_fields=(options.text_field, outer),
        fields=(options.text_field, options.id_field, *kept),
        newline=options.newline,
    )


def _provenance(options: TextOptions) -> Mapping[str, pa.DataType]:
    columns = ["id", *(name for name, _ in _columns(options.provenance))]
    return dict.fromkeys(columns, pa.large_string())


def _named_fields(options: TextOptions) -> Mapping[str, str]:
    named = {options.id_field: f"--id-field {options.id_field}"}
    if options.id_field == TextOptions.id_field:  # the default field may be missing from records
        named = {}
    fields = [field for _, field in _columns(options.provenance)]
    flags = [f"--provenance {item}" for item in options.provenance]
    return {**named, **dict(zip(fields, flags, strict=True))}


CORPUS = CorpusSpec(
    name="text",
    about="Clean, filter, deduplicate, tokenize and shuffle texts into token shards.",
    pattern=TEXT_FILES,
    options=TextOptions,
    input_format=_input_format,
    provenance=_provenance,
    documents=documents,
    named_fields=_named_fields,
)

if __name__ == "__main__":
    sys.exit(main("pipelines.text", sys.argv[1:]))
