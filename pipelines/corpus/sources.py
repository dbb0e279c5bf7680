"""Which corpus each source of a run is.

A run reads one corpus, or several: `--input zh=/data/wudao --input en=pile:/data/pile` given to
pipelines.wudao reads the second as pipelines.pile would, with the options that the two share and
its own defaults for the others. A custom corpus is named by its module:
`--input zh=my.notes:/data/notes`.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, BinaryIO

import pyarrow as pa

from pipelines.corpus.clean_level import check_inputs
from pipelines.corpus.code import CODE, code_hash
from pipelines.corpus.failure import failures_told
from pipelines.corpus.options import SEGMENTS, Options, semantic
from pipelines.corpus.recipe import Recipe, find_corpus, load_recipe
from pipelines.read.files import InputFile, list_inputs, named_inputs
from pipelines.read.formats import is_whole_array, open_reader
from pipelines.read.input_file import shown
from pipelines.read.input_format import InputFormat, Read
from pipelines.read.listing import Listing
from pipelines.read.peek import Peek
from pipelines.read.reader import RecordReader
from pipelines.read.record import BrokenRecord
from pipelines.read.split import FileSplit
from shards.commands.flags import flag_of
from shards.errors import UserError

_LOG = logging.getLogger("corpusmill")
_OF_CORPUS = re.compile(
    r"([A-Za-z0-9_.-]+)=([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?!//)(.+)", re.DOTALL | re.ASCII
)
"""NAME=CORPUS:PATH."""

MODULE = "module of the corpus"
"""Next to the options of a source's corpus, its module if it is not of this package."""


@dataclass(frozen=True)
class Corpus:
    """A corpus with its options."""

    module: str
    """The module that holds it as RECIPE."""
    options: Options

    @property
    def recipe(self) -> Recipe:
        """Its recipe."""
        return load_recipe(self.module)

    @property
    def reading(self) -> InputFormat:
        """How its files are read."""
        reading: InputFormat = self._asked("reading")
        if reading.read:
            reading = replace(reading, read=partial(_read, self.module, reading.read))
        options = self.options
        most = options.max_record_bytes or reading.max_record_bytes
        return replace(reading, max_record_bytes=most, bad_utf8=options.bad_utf8, nul=options.nul)

    @property
    def columns(self) -> Mapping[str, pa.DataType]:
        """The columns that its documents have."""
        columns: Mapping[str, pa.DataType] = self._asked("provenance")
        return columns

    def _asked(self, what: str) -> Any:
        """Return the result of a function of its recipe for these options."""
        with failures_told(self.module, doing=f"the {what} of its recipe fails"):
            return getattr(self.recipe, what)(self.options)

    def reader(self, split: FileSplit, *, whole: bool = False) -> RecordReader:
        """Return the reader of a split of one of its files; `whole` as in InputFormat."""
        return open_reader(split, replace(self.reading, whole=whole))

    def facts(self) -> dict[str, Any]:
        """Return the facts besides the options that decide bytes, JSON-able: its code."""
        return self._code()

    def own(self) -> dict[str, Any]:
        """Return its code, and the options that only this corpus has and that decide bytes."""
        shared = {field.name for field in fields(Options)}
        chosen = semantic(self.options, {}, decides=(SEGMENTS,))
        own = {name: value for name, value in chosen.items() if name not in shared}
        return {**own, **self._code()}

    def _code(self) -> dict[str, str]:
        code = code_hash(self.module)
        return {CODE: code} if code else {}


def _read(module: str, read: Read, stream: BinaryIO) -> Iterator[Mapping[str, Any] | BrokenRecord]:
    """Yield the records of the reading function of a corpus.

    Raises:
        UserError: It fails; the message says where.
    """
    with failures_told(module, doing="its read() fails"):
        yield from read(stream)


def match_corpora(module: str, options: Options) -> tuple[list[InputFile], dict[str, Corpus]]:
    """Return the files of all inputs, by source and path, and the corpus of each source.

    Raises:
        UserError: As list_corpora.
    """
    listing, corpora = list_corpora(module, options)
    return listing.files, corpora


def list_corpora(module: str, options: Options) -> tuple[Listing, dict[str, Corpus]]:
    """Return the listing of all inputs, with the files that --skip-unreadable leaves out.

    Raises:
        UserError: An input does not exist, two share a name, or a corpus is unknown; something
            cannot be read, unless that is to be skipped and the source has other files.
    """
    inbox, corpora = growing_corpora(module, options)
    listing = inbox.list_files(growing=False)
    if options.skip_unreadable:
        listing = without_broken(listing, corpora)
    _check_readable(listing, options)
    listing.log_remarks()
    _log_large_array(listing.files, corpora, options)
    return listing, corpora


def without_broken(listing: Listing, corpora: Mapping[str, Corpus]) -> Listing:
    """Return a listing without the files that are not what their names say, or have no footer."""
    refused = dict(listing.refused)
    for file in listing.files:
        try:
            Peek(file.path, corpora[file.source].reading).check()
        except UserError as error:
            refused[file] = str(error).removeprefix(f"The input {file.path} ")
    files = [file for file in listing.files if file not in refused]
    return replace(listing, files=files, refused=refused)


def _check_readable(listing: Listing, options: Options) -> None:
    """Check that all can be read; with --skip-unreadable, that something of each source can."""
    if not options.skip_unreadable:
        listing.check(", or give --skip-unreadable to continue without it")
    left = {file.source for file in listing.files}
    empty = {file: why for file, why in listing.refused.items() if file.source not in left}
    Listing(files=[], refused=empty).check(": nothing is left of this source")
    if listing.refused:
        _LOG.warning(
            "%d files or folders cannot be read and are left out: %s",
            len(listing.refused),
            listing.named(),
        )


def _log_large_array(
    files: Sequence[InputFile], corpora: Mapping[str, Corpus], options: Options
) -> None:
    """Log that one worker of several reads most of the input: a JSON array is one split."""
    total = sum(file.bytes for file in files)
    least = max(options.split_bytes, total // 2)
    for file in files if options.workers != 1 else ():
        if file.bytes > least and is_whole_array(file.path, corpora[file.source].reading):
            _LOG.info(
                "%s is a JSON array of %.0f %% of the input, and one worker reads all of it: cut "
                "it into several files to use more workers",
                shown(file.path),
                100 * file.bytes / total,
            )


def input_specs(options: Options) -> list[str]:
    """Return the inputs of a run, whatever their corpus: PATH or NAME=PATH."""
    own, of_others = _by_corpus(options.input)
    return [*own, *(spec for specs in of_others.values() for spec in specs)]


@dataclass(frozen=True)
class Inbox:
    """Where a dataset that grows finds its files; there need not be any yet."""

    groups: Sequence[tuple[Corpus, Sequence[str]]]
    """The inputs of each corpus."""

    def list_files(self, *, growing: bool = True) -> Listing:
        """Return the files that are there now, by source and path.

        Args:
            growing: As of `list_inputs`.

        Raises:
            UserError: An input is not there, or a server does not answer.
        """
        return Listing.joined(
            list_inputs(
                specs,
                pattern=corpus.recipe.pattern,
                default_name=corpus.recipe.name,
                growing=growing,
            )
            for corpus, specs in self.groups
        )


def growing_corpora(module: str, options: Options) -> tuple[Inbox, dict[str, Corpus]]:
    """Return where files arrive, and the corpus of each source; no file need be there yet.

    Raises:
        UserError: Two inputs share a name, one has none, or a corpus is unknown.
    """
    groups = _groups(module, options)
    corpora: dict[str, Corpus] = {}
    for corpus, specs in groups:
        for source, _ in named_inputs(specs, corpus.recipe.name):
            _check_new(source, corpora, unnamed=len(groups) > 1 and not _names(specs, source))
            corpora[source] = corpus
            _check_addresses(source, corpus)
    check_inputs(options.clean, corpora)
    return Inbox(groups), corpora


def _groups(module: str, options: Options) -> list[tuple[Corpus, list[str]]]:
    """Return the inputs of each corpus."""
    specs, specs_of = _by_corpus(options.input)
    groups = [(Corpus(module, options), specs)] if specs or not specs_of else []
    return groups + [(_other(name, options), specs) for name, specs in specs_of.items()]


def others(corpora: Mapping[str, Corpus], corpus: Corpus) -> dict[str, Any]:
    """Return the manifest's entry on sources of other corpora than the run's, if any."""
    entries = {
        source: {"corpus": other.recipe.name, **_module_of(other), **other.own()}
        for source, other in corpora.items()
        if other != corpus
    }
    return {"corpora": entries} if entries else {}


def other_modules(options: Options) -> list[str]:
    """Return the modules of custom corpora that inputs are given to.

    Raises:
        UserError: There is no such corpus.
    """
    corpora = (_other(name, options).module for name in _by_corpus(options.input)[1])
    return sorted(module for module in corpora if not module.startswith("pipelines."))


def _module_of(corpus: Corpus) -> dict[str, str]:
    """Return the module of a corpus that its name does not lead to."""
    return {} if corpus.module.startswith("pipelines.") else {MODULE: corpus.module}


def _by_corpus(specs: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the inputs of the run's own corpus, and those of others by corpus."""
    own: list[str] = []
    others: dict[str, list[str]] = {}
    for spec in specs:
        matched = _OF_CORPUS.fullmatch(spec)
        if matched is None or matched[2] == "hf":
            own.append(spec)
        else:
            others.setdefault(matched[2], []).append(f"{matched[1]}={matched[3]}")
    return own, others


def _other(corpus: str, options: Options) -> Corpus:
    where = f"an --input NAME={corpus}:PATH; a path with a colon begins with ./"
    module = find_corpus(corpus, where=where)
    shared = {field.name: getattr(options, field.name) for field in fields(Options)}
    options_class = load_recipe(module).options
    usual = {field.name: field.default for field in fields(options_class) if field.name in shared}
    defaults = {field.name: field.default for field in fields(Options)}
    for name, value in usual.items():
        if value != defaults[name] and value != shared[name]:
            _LOG.warning(
                "%s by itself has another %s than this run: %s", module, flag_of(name), value
            )
    return Corpus(module, options_class(**shared))


def _names(specs: Sequence[str], source: str) -> bool:
    return any(spec.startswith(f"{source}=") for spec in specs)


def _check_addresses(source: str, corpus: Corpus) -> None:
    columns = corpus.columns
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
