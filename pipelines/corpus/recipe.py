"""The recipe of a corpus: its files, its records, its defaults."""

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.corpus.document import Document
from pipelines.corpus.failure import code_failure
from pipelines.corpus.options import Options
from pipelines.read.input_format import InputFormat
from shards.commands.spelling import did_you_mean
from shards.commands.table import CORPUS_GROUP
from shards.errors import UserError
from shards.memory import is_out_of_memory

SAMPLE = Path(__file__).parents[1] / "sample"
"""The corpus and the tokenizer that come with the package."""

CORPORA = (
    "wudao", "pile", "fineweb", "text", "zhihu", "zhidao", "baike", "cc_news", "openwebtext",
)  # fmt: skip
"""The modules of this package that hold a corpus."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One corpus.

    Workers get the name of the module that holds it as RECIPE, so it is never pickled.
    """

    name: str
    """Name of the corpus, and of the source made of a single unnamed input."""

    about: str
    """The text of `--help`."""

    pattern: str | tuple[str, ...]
    """Which files of a folder are read."""

    options: type[Options]
    """Its options, with its defaults."""

    reading: Callable[[Any], InputFormat]
    """How its files are read with these options."""

    provenance: Callable[[Any], Mapping[str, pa.DataType]]
    """The columns that `documents` fills with these options, kept for every document."""

    documents: Callable[[Mapping[str, Any], Any], Sequence[Document]]
    """Make a record's documents, one at least; raises Rejected for a malformed record."""

    group: str = ""
    """The column of provenance by whose values the account is broken down, if any."""

    named_fields: Callable[[Any], Mapping[str, str]] = lambda _: {}
    """The fields that these options name besides that of the text, each with the flag and the value
    that name it: a run ends at once if the first records have none."""

    sample: Path | None = None
    """The built-in input, if there is one: a folder or a glob."""

    sample_tokenizer: str = f"sentencepiece:{SAMPLE / 'sample.model'}"
    """The tokenizer that goes with it."""


def strings(*names: str) -> Callable[[Any], Mapping[str, pa.DataType]]:
    """Return provenance that is the same for all options: columns of text."""
    columns = dict.fromkeys(names, pa.large_string())
    return lambda _: columns


def always(reading: InputFormat) -> Callable[[Any], InputFormat]:
    """Return a reading that no option changes."""
    return lambda _: reading


def load_recipe(module: str) -> Recipe:
    """Return the recipe of a corpus module such as "pipelines.wudao".

    Raises:
        UserError: The module cannot be imported, or has no recipe.
    """
    recipe = _recipe_in(module)
    if not isinstance(recipe, Recipe):
        raise UserError(f"{module} is no corpus: a corpus has a Recipe that is called RECIPE")
    return recipe


def corpus_module(name: str) -> str | None:
    """Return the module of the corpus that goes by a name; None if there is none.

    Args:
        name: That of a corpus of this package, or of an installed one (CORPUS_GROUP), or a module.

    Raises:
        UserError: It is the name of a module that cannot be imported.
    """
    if "." not in name and has_recipe(f"pipelines.{name}"):
        return f"pipelines.{name}"
    for entry in importlib.metadata.entry_points(group=CORPUS_GROUP, name=name):
        return entry.module
    return name if has_recipe(name) else None


def find_corpus(name: str, *, where: str) -> str:
    """Return the module of the corpus that goes by a name, as corpus_module does.

    Args:
        name: The name.
        where: Where it was given, for the error.

    Raises:
        UserError: There is none; the message names the nearest.
    """
    module = corpus_module(name)
    if module is None:
        known = corpus_names()
        meant = did_you_mean(name, known)
        raise UserError(
            f"there is no corpus {name!r} (in {where}): {meant}{' A' if meant else 'a'} corpus is "
            "one of "
            f"{', '.join(known)}, or a module with a RECIPE, such as my.notes, that is in the "
            "working directory or is installed"
        )
    return module


def corpus_names() -> list[str]:
    """Return the names of the corpora of this package and of installed ones."""
    return [*CORPORA, *sorted(importlib.metadata.entry_points(group=CORPUS_GROUP).names)]


def is_module(name: str, *, what: str = "corpus") -> bool:
    """Return whether there is a module of a name; the packages around it are imported.

    Args:
        name: The name.
        what: The kind of code that the module should hold, for the error.

    Raises:
        UserError: One of them cannot be imported.
    """
    try:
        return importlib.util.find_spec(name) is not None
    except Exception as error:
        if is_out_of_memory(error):
            raise
        if isinstance(error, ModuleNotFoundError) and name.startswith(error.name or "?"):
            return False
        raise code_failure(
            name, error, doing="its package cannot be imported", what=what
        ) from error


def has_recipe(module: str) -> bool:
    """Return whether there is a module, and it holds a recipe.

    Raises:
        UserError: It cannot be imported.
    """
    return is_module(module) and _recipe_in(module) is not None


def _recipe_in(module: str) -> Any:
    try:
        return getattr(importlib.import_module(module), "RECIPE", None)
    except Exception as error:
        if is_out_of_memory(error):
            raise
        raise code_failure(module, error, doing="it cannot be imported") from error
