"""The description of a corpus: its files, its records and its defaults."""

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.corpus.document import Document
from pipelines.corpus.failure import reraise_user_code_errors
from pipelines.corpus.options import Options
from pipelines.read.input_format import InputFormat
from shards.commands.spelling import did_you_mean
from shards.commands.table import CORPUS_GROUP
from shards.errors import UserError

SAMPLE = Path(__file__).parents[1] / "sample"
"""The folder of the bundled sample: a corpus and a tokenizer."""

CORPORA = (
    "wudao", "pile", "fineweb", "text", "zhihu", "zhidao", "baike", "cc_news", "openwebtext",
)  # fmt: skip
"""The modules of this package that describe a corpus."""


@dataclass(frozen=True, kw_only=True)
class CorpusSpec:
    """Describes a corpus; the module of the corpus assigns the description to CORPUS.

    Workers import the module by its name, so the description is never pickled.
    """

    name: str
    """The name of the corpus, and of the source that an unnamed input becomes."""

    about: str
    """The text of `--help`."""

    pattern: str | tuple[str, ...]
    """The pattern, or patterns, of the files to read in a folder."""

    options: type[Options]
    """The class of the corpus's options, with its defaults."""

    input_format: InputFormat | Callable[[Any], InputFormat]
    """The format of the files, or a function of the options that returns the format."""

    provenance: Mapping[str, pa.DataType] | Callable[[Any], Mapping[str, pa.DataType]]
    """The columns that `documents` fills and that every document keeps, or a function of the
    options that returns these columns."""

    documents: Callable[[Mapping[str, Any], Any], Sequence[Document]]
    """The function that returns one or more documents for a record. It raises Rejected for a
    malformed record."""

    group: str = ""
    """The column of provenance whose values divide the account into groups; "" means no groups."""

    named_fields: Callable[[Any], Mapping[str, str]] = lambda _: {}
    """A function of the options that returns the fields that they name, except that of the text,
    each with the flag and value that name the field. A run stops at once if none of the first
    records has such a field."""

    sample: Path | None = None
    """The bundled input, a folder or a glob; None if there is none."""

    sample_tokenizer: str = f"sentencepiece:{SAMPLE / 'sample.model'}"
    """The tokenizer for the bundled input."""


def text_columns(*names: str) -> Mapping[str, pa.DataType]:
    """Return columns of text, for `CorpusSpec.provenance`."""
    return dict.fromkeys(names, pa.large_string())


def load_spec(module: str) -> CorpusSpec:
    """Return the description in a corpus module such as "pipelines.wudao".

    Raises:
        UserError: The module cannot be imported, or has no CorpusSpec called CORPUS.
    """
    spec = _spec_in(module)
    if not isinstance(spec, CorpusSpec):
        raise UserError(
            f"{module} is not a corpus: the module of a corpus has a CorpusSpec called CORPUS"
        )
    return spec


def find_corpus(name: str, *, where: str) -> str:
    """Return the module of the corpus that a name stands for.

    Args:
        name: The name of a corpus of this package, of a corpus that an installed package provides
            (CORPUS_GROUP), or of a module.
        where: The place where the user gave the name, for the error.

    Raises:
        UserError: There is no such corpus, and the message suggests the most similar name; or the
            name is that of a module that cannot be imported.
    """
    if "." not in name and has_spec(f"pipelines.{name}"):
        return f"pipelines.{name}"
    for entry in importlib.metadata.entry_points(group=CORPUS_GROUP, name=name):
        return entry.module
    if has_spec(name):
        return name
    known = corpus_names()
    meant = did_you_mean(name, known)
    raise UserError(
        f"there is no corpus {name!r} (in {where}): {meant}{' T' if meant else 't'}he corpora are "
        f"{', '.join(known)}, and any module with a CORPUS, such as my.notes, that is in the "
        "working directory or is installed"
    )


def corpus_names() -> list[str]:
    """Return the names of the corpora of this package and of installed packages."""
    return [*CORPORA, *sorted(importlib.metadata.entry_points(group=CORPUS_GROUP).names)]


def is_module(name: str, *, what: str = "corpus") -> bool:
    """Import the packages that contain a module, and return whether the module exists.

    Args:
        name: The name of the module.
        what: The kind of code that the module should contain, for the error.

    Raises:
        UserError: One of the packages cannot be imported.
    """
    with reraise_user_code_errors(name, doing="its package cannot be imported", what=what):
        try:
            return importlib.util.find_spec(name) is not None
        except ModuleNotFoundError as error:
            if not name.startswith(error.name or "?"):
                raise
            return False


def has_spec(module: str) -> bool:
    """Return whether a module exists and describes a corpus.

    Raises:
        UserError: The module cannot be imported.
    """
    return is_module(module) and _spec_in(module) is not None


def _spec_in(module: str) -> Any:
    with reraise_user_code_errors(module, doing="it cannot be imported"):
        return getattr(importlib.import_module(module), "CORPUS", None)
