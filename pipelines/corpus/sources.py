"""Which corpus each source of a run is.

A run reads one corpus, or several: `--input zh=/data/wudao --input en=pile:/data/pile` given to
pipelines.wudao reads the second as pipelines.pile would, with the options that the two share and
its own defaults for the others.
"""

import importlib.util
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from pipelines.corpus.options import SEGMENTS, Options, semantic
from pipelines.corpus.recipe import Recipe, load_recipe
from pipelines.inputs.files import InputFile, match_inputs
from pipelines.inputs.split import Split
from pipelines.readers.reading import Reading, open_reader
from pipelines.readers.record import Reader
from pipelines.readers.rejected import RejectReader
from pipelines.readers.rejects import Rejects
from shards.errors import UserError

_LOG = logging.getLogger("corpusmill")
_OTHER = re.compile(r"([A-Za-z0-9_.-]+)=([a-z][a-z0-9_]*):(?!//)(.+)", re.DOTALL)


@dataclass(frozen=True)
class Corpus:
    """A corpus with its options."""

    module: str
    """The module that holds it as RECIPE."""
    options: Options
    rejects: Rejects | None = None
    """What to read of its inputs, in place of all: the records that another run rejected."""

    @property
    def recipe(self) -> Recipe:
        """Its recipe."""
        return load_recipe(self.module)

    @property
    def reading(self) -> Reading:
        """How its files are read."""
        reading = self.recipe.reading(self.options)
        if self.rejects is None:
            return reading
        return replace(reading, max_record_bytes=self.rejects.max_record_bytes)

    def reader(self, split: Split) -> Reader:
        """Return what reads a split of one of its files."""
        if self.rejects is None:
            return open_reader(split, self.reading)
        return RejectReader(split, self.reading, self.rejects)

    def own(self) -> dict[str, Any]:
        """Return the options that only this corpus has and that decide bytes."""
        shared = {each.name for each in fields(Options)}
        chosen = semantic(self.options, {}, decides=(SEGMENTS,))
        return {name: value for name, value in chosen.items() if name not in shared}


def match_corpora(module: str, options: Options) -> tuple[list[InputFile], dict[str, Corpus]]:
    """Return the files of all inputs, by source and path, and the corpus of each source.

    Raises:
        UserError: An input is not there, two share a name, or a corpus is not known.
    """
    mine, others = _sorted_out(options.input)
    groups = [(Corpus(module, options), mine)] if mine or not others else []
    groups += [(_other(name, options), specs) for name, specs in others.items()]
    files: list[InputFile] = []
    corpora: dict[str, Corpus] = {}
    for corpus, specs in groups:
        recipe = corpus.recipe
        found = match_inputs(specs, pattern=recipe.pattern, default_name=recipe.name)
        for source in sorted({file.source for file in found}):
            _check_new(source, corpora, unnamed=len(groups) > 1 and not _names(specs, source))
            corpora[source] = corpus
            _check_addresses(source, corpus)
        files += found
    return sorted(files, key=lambda file: (file.source, file.relative)), corpora


def others(corpora: Mapping[str, Corpus], corpus: Corpus) -> dict[str, Any]:
    """Return what the manifest says of sources of other corpora than the run's, if any."""
    found = {
        source: {"corpus": each.recipe.name, **each.own()}
        for source, each in corpora.items()
        if each != corpus
    }
    return {"corpora": found} if found else {}


def _sorted_out(specs: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the inputs of the run's own corpus, and those of others by corpus."""
    mine: list[str] = []
    others: dict[str, list[str]] = {}
    for spec in specs:
        matched = _OTHER.fullmatch(spec)
        if matched is None or matched[2] == "hf":
            mine.append(spec)
        else:
            others.setdefault(matched[2], []).append(f"{matched[1]}={matched[3]}")
    return mine, others


def _other(name: str, options: Options) -> Corpus:
    module = f"pipelines.{name}"
    found = importlib.util.find_spec(module)
    if found is None or not hasattr(importlib.import_module(module), "RECIPE"):
        raise UserError(
            f"there is no corpus {name!r} (in an --input NAME={name}:PATH): a corpus is a module "
            "such as pipelines.wudao, pipelines.pile or pipelines.text"
        )
    shared = {each.name: getattr(options, each.name) for each in fields(Options)}
    kind = load_recipe(module).options
    usual = {each.name: each.default for each in fields(kind) if each.name in shared}
    defaults = {each.name: each.default for each in fields(Options)}
    for flag, value in usual.items():
        if value != defaults[flag] and value != shared[flag]:
            _LOG.warning(
                "%s by itself has another --%s than this run: %s",
                module,
                flag.replace("_", "-"),
                value,
            )
    return Corpus(module, kind(**shared))


def _names(specs: Sequence[str], source: str) -> bool:
    return any(spec.startswith(f"{source}=") for spec in specs)


def _check_addresses(source: str, corpus: Corpus) -> None:
    columns = corpus.recipe.provenance(corpus.options)
    if corpus.options.url_blocklist and "url" not in columns:
        raise UserError(
            f"--url-blocklist: the documents of the input {source!r} have no column url (they have "
            f"{', '.join(columns) or 'none'}); pipelines.text takes one with --provenance url=FIELD"
        )


def _check_new(source: str, corpora: Mapping[str, Corpus], *, unnamed: bool) -> None:
    if unnamed:
        raise UserError(
            "several inputs were given and not all have a name; give each one its own, for example "
            "--input zh=/data/wudao --input en=pile:/data/pile"
        )
    if source in corpora:
        raise UserError(f"two inputs are called {source!r}; give each one its own name")
