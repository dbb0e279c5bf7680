"""The corpus and the files of each source of a run.

A run reads one corpus or several. With `--input zh=/data/wudao --input en=pile:/data/pile`
pipelines.wudao reads the second input as pipelines.pile would, with the options that all corpora
share; the remaining options of the pile have their defaults. The name of a user's corpus is its
module: `--input zh=my.notes:/data/notes`.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, BinaryIO

import pyarrow as pa

from pipelines.corpus.clean_level import check_inputs
from pipelines.corpus.code import CORPUS_CODE, code_hash
from pipelines.corpus.failure import reraise_user_code_errors
from pipelines.corpus.options import SEGMENTS, Options, semantic_options
from pipelines.corpus.spec import CorpusSpec, find_corpus, load_spec
from pipelines.read.files import InputFile, list_inputs, named_inputs
from pipelines.read.formats import is_whole_array, open_reader
from pipelines.read.input_file import shown
from pipelines.read.input_format import InputFormat, ReadFunction
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
"""Matches NAME=CORPUS:PATH."""

CORPUS_MODULE = "module of the corpus"
"""The key under which the options of a source's corpus record a module outside this package."""


@dataclass(frozen=True)
class Corpus:
    """A corpus with its options."""

    module: str
    """The module that describes the corpus in its CORPUS."""
    options: Options

    @property
    def spec(self) -> CorpusSpec:
        """The description of the corpus."""
        return load_spec(self.module)

    @property
    def input_format(self) -> InputFormat:
        """The format of the files, with the limits and repairs that the options set."""
        options = self.options
        with reraise_user_code_errors(self.module, doing="its input_format fails"):
            found: InputFormat = self._with_options(self.spec.input_format)
            read = partial(_read, self.module, found.read) if found.read else None
            most = options.max_record_bytes or found.max_record_bytes
            return replace(
                found, read=read, max_record_bytes=most, bad_utf8=options.bad_utf8, nul=options.nul
            )

    @property
    def columns(self) -> Mapping[str, pa.DataType]:
        """The columns of provenance that the documents have."""
        with reraise_user_code_errors(self.module, doing="its provenance fails"):
            return dict(self._with_options(self.spec.provenance))

    def _with_options(self, value: Any) -> Any:
        """Return a value of the description; if it is a function, call it with the options."""
        return value(self.options) if callable(value) else value

    def reader(self, split: FileSplit, *, all_columns: bool = False) -> RecordReader:
        """Return a reader of a split of a file; `all_columns` is as in InputFormat."""
        return open_reader(split, replace(self.input_format, all_columns=all_columns))

    def code(self) -> dict[str, str]:
        """Return the entry for the hash of a user's corpus; {} for a corpus of this package."""
        code = code_hash(self.module)
        return {CORPUS_CODE: code} if code else {}

    def specific_options(self) -> dict[str, Any]:
        """Return the byte-affecting options that only this corpus has, and the hash of its code."""
        shared = {field.name for field in fields(Options)}
        chosen = semantic_options(self.options, {}, affects=(SEGMENTS,))
        specific = {name: value for name, value in chosen.items() if name not in shared}
        return {**specific, **self.code()}


def _read(
    module: str, read: ReadFunction, stream: BinaryIO
) -> Iterator[Mapping[str, Any] | BrokenRecord]:
    """Yield the records that the reading function of a corpus yields.

    Raises:
        UserError: The function fails; the message names the line.
    """
    with reraise_user_code_errors(module, doing="its read() fails"):
        yield from read(stream)


def list_corpus_files(module: str, options: Options) -> tuple[Listing, dict[str, Corpus]]:
    """Check that all inputs can be read; return their listing and the corpus of each source.

    Raises:
        UserError: An input does not exist, two inputs have the same name, or a corpus is unknown;
            or a file cannot be read, unless --skip-unreadable is given and the source has files
            that can be read.
    """
    inputs, corpora = corpus_inputs(module, options)
    listing = inputs.list_files(growing=False)
    if options.skip_unreadable:
        listing = without_broken(listing, corpora)
    _check_readable(listing, options)
    listing.log_remarks()
    _log_large_array(listing.files, corpora, options)
    return listing, corpora


def without_broken(listing: Listing, corpora: Mapping[str, Corpus]) -> Listing:
    """Return a listing in which files in a wrong format and tables without a footer are refused."""
    refused = dict(listing.refused)
    for file in listing.files:
        try:
            Peek(file.path, corpora[file.source].input_format).check()
        except UserError as error:
            refused[file] = str(error).removeprefix(f"The input {file.path} ")
    files = [file for file in listing.files if file not in refused]
    return replace(listing, files=files, refused=refused)


def _check_readable(listing: Listing, options: Options) -> None:
    """Check that all files can be read or, with --skip-unreadable, at least one of each source."""
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
    """Log that a single worker will read most of the input, if that is one JSON array."""
    total = sum(file.bytes for file in files)
    least = max(options.split_bytes, total // 2)
    for file in files if options.workers != 1 else ():
        if file.bytes > least and is_whole_array(file.path, corpora[file.source].input_format):
            _LOG.info(
                "%s is a JSON array with %.0f %% of the input, which a single worker reads: split "
                "the file into several to use more workers",
                shown(file.path),
                100 * file.bytes / total,
            )


def input_specs(options: Options) -> list[str]:
    """Return the inputs of a run without the names of corpora, as PATH or NAME=PATH."""
    own, of_others = _by_corpus(options.input)
    return [*own, *(spec for specs in of_others.values() for spec in specs)]


@dataclass(frozen=True)
class CorpusInputs:
    """The inputs of a run by corpus; new files may be added to the inputs."""

    groups: Sequence[tuple[Corpus, Sequence[str]]]
    """Each corpus with its inputs, as PATH or NAME=PATH."""

    def list_files(self, *, growing: bool = True) -> Listing:
        """Return the files that exist now, sorted by source and path.

        Args:
            growing: Whether an input may have no files yet, as in `list_inputs`.

        Raises:
            UserError: An input does not exist, or a server does not answer.
        """
        return Listing.joined(
            list_inputs(
                specs,
                pattern=corpus.spec.pattern,
                default_name=corpus.spec.name,
                growing=growing,
            )
            for corpus, specs in self.groups
        )


def corpus_inputs(module: str, options: Options) -> tuple[CorpusInputs, dict[str, Corpus]]:
    """Return the inputs of a run, and the corpus of each source, but do not list files.

    Raises:
        UserError: Two inputs have the same name, only some have names, or a corpus is unknown.
    """
    groups = _groups(module, options)
    named_inputs(input_specs(options), "")  # inputs of different corpora need different names
    corpora: dict[str, Corpus] = {}
    for corpus, specs in groups:
        for source, _ in named_inputs(specs, corpus.spec.name):
            corpora[source] = corpus
            _check_addresses(source, corpus)
    check_inputs(options.clean, corpora)
    return CorpusInputs(groups), corpora


def _groups(module: str, options: Options) -> list[tuple[Corpus, list[str]]]:
    """Return each corpus with its inputs."""
    specs, specs_of = _by_corpus(options.input)
    groups = [(Corpus(module, options), specs)] if specs or not specs_of else []
    return groups + [(_other(name, options), specs) for name, specs in specs_of.items()]


def other_corpora(corpora: Mapping[str, Corpus], corpus: Corpus) -> dict[str, Any]:
    """Return the manifest's entry for sources that do not have the run's corpus; {} if all do."""
    entries = {
        source: {"corpus": other.spec.name, **_module_of(other), **other.specific_options()}
        for source, other in corpora.items()
        if other != corpus
    }
    return {"corpora": entries} if entries else {}


def user_corpus_modules(options: Options) -> list[str]:
    """Return the modules outside this package that inputs name as their corpora.

    Raises:
        UserError: A corpus is unknown.
    """
    corpora = (_other(name, options).module for name in _by_corpus(options.input)[1])
    return sorted(module for module in corpora if not module.startswith("pipelines."))


def _module_of(corpus: Corpus) -> dict[str, str]:
    """Return the entry for the module of a corpus; {} for this package, whose names suffice."""
    return {} if corpus.module.startswith("pipelines.") else {CORPUS_MODULE: corpus.module}


def _by_corpus(specs: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the inputs of the run's corpus, and those of all other corpora, by corpus."""
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
    options_class = load_spec(module).options
    usual = {field.name: field.default for field in fields(options_class) if field.name in shared}
    defaults = {field.name: field.default for field in fields(Options)}
    for name, value in usual.items():
        if value != defaults[name] and value != shared[name]:
            _LOG.warning(
                "%s alone would have %s %s, but this run has another value",
                module,
                flag_of(name),
                ",".join(value) if isinstance(value, tuple) else value,
            )
    return Corpus(module, options_class(**shared))


def _check_addresses(source: str, corpus: Corpus) -> None:
    columns = corpus.columns
    if corpus.options.url_blocklist and "url" not in columns:
        raise UserError(
            f"--url-blocklist: the documents of the input {source!r} have no column url (they have "
            f"{', '.join(columns) or 'none'}); pipelines.text makes one with --provenance url=FIELD"
        )
