"""What makes a corpus a corpus: its files, its records, its defaults."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.document import Document
from pipelines.options import Options

SAMPLE = Path(__file__).parent / "sample"
"""The corpus and the tokenizer that come with the package."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One corpus.

    Workers are told the name of the module that holds it as RECIPE, so nothing of it is pickled.
    """

    name: str
    """Name of the corpus, and of the source made of a single unnamed input."""

    about: str
    """The text of `--help`."""

    pattern: str
    """What a folder is searched for."""

    options: type[Options]
    """Its options, with its defaults."""

    text_fields: tuple[str, ...]
    """Fields that tell a record from an object nested in one."""

    provenance: tuple[str, ...]
    """String columns that `document` fills, kept for every document."""

    document: Callable[[Mapping[str, Any], Any], Document]
    """Make a record's document; raises Rejected for a record that is not what it should be."""

    sample: Path = SAMPLE
    """The folder of the built-in input."""

    sample_tokenizer: str = f"sentencepiece:{SAMPLE / 'sample.model'}"
    """The tokenizer that goes with it."""


def load_recipe(module: str) -> Recipe:
    """Return the recipe of a corpus module such as "pipelines.wudao"."""
    recipe: Recipe = importlib.import_module(module).RECIPE
    return recipe
