"""Texts of a corpus to train something on: a sample, some of it held back to measure the result."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.corpus.clean_level import given_level, level_of
from pipelines.corpus.document import Rejected
from pipelines.corpus.keywords import options_of_keywords
from pipelines.corpus.options import Options
from pipelines.corpus.recipe import find_corpus, load_recipe
from pipelines.corpus.sources import Corpus
from pipelines.read.fields import fields_of, listed
from pipelines.read.files import InputFile
from pipelines.read.input_format import InputFormat, open_reader, splits
from pipelines.read.record import Record
from pipelines.read.salvage import Partial
from pipelines.segments.identity import hash_bound, holdout_hashes, sample_hashes
from pipelines.steps.clean import clean
from shards.errors import UserError
from shards.flags import flag_of
from shards.shown import tell

_BATCH = 1000
_REJECTED = 100
"""Records that are rejected whose fields are named."""


def check_new(path: Path, ending: str, library: str) -> None:
    """Check that a model can be written: its name has the ending of its library, and is free.

    Raises:
        UserError: It has another ending, or something is there.
    """
    if path.suffix != ending:
        raise UserError(f"--output {path}: the name of a {library} model has to end in {ending}.")
    if path.exists():
        raise UserError(f"{path} exists already: remove it or choose another --output.")


def input_options(
    corpus: str, inputs: Sequence[str], *, text_field: str, format: str, **more: Any
) -> tuple[str, Options]:
    """Return the module of a corpus, and its options that say what to read.

    Args:
        corpus: Its name, as --corpus has it.
        inputs: As --input of the corpus.
        text_field: As of pipelines.text; "": the usual one.
        format: As of pipelines.text; "": the usual one.
        more: Further options.

    Raises:
        UserError: There is no such corpus, or it has no such option or value.
    """
    module = find_corpus(corpus, where="--corpus")
    options_class = load_recipe(module).options
    given = {"text_field": text_field, "format": format}
    own = {name: value for name, value in given.items() if value}
    for name in own.keys() - {field.name for field in fields(options_class)}:
        raise UserError(
            f"{flag_of(name)}: the corpus {corpus} knows its field and format; leave the flag out, "
            "or give --corpus text"
        )
    options = options_of_keywords(options_class, own, module=module)
    return module, replace(options, input=tuple(inputs), **more)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Which texts to take; the hashes of their records decide."""

    num_bytes: int
    """About how many bytes of the input to take."""
    seed: int
    held_share: float
    """Share of the records to hold back."""
    held_bytes: int
    """Most bytes to hold back; what is above is trained on."""


class TrainingTexts:
    """The texts of a sample of a corpus's records.

    Iterating yields the texts to train on and keeps some others back in `held`.
    """

    def __init__(
        self,
        files: Sequence[InputFile],
        corpora: Mapping[str, Corpus],
        sample: Sample,
        *,
        program: str,
    ) -> None:
        """Prepare to read.

        Args:
            files: The input.
            corpora: The corpus of each source.
            sample: Which texts to take.
            program: Begins the lines that say what is read.
        """
        self._files = files
        self._corpora = corpora
        self._sample = sample
        self._program = program
        total = sum(file.bytes for file in files)
        self._limit = hash_bound(min(1.0, sample.num_bytes / max(total, 1)))
        self.documents = 0
        """Documents yielded so far."""
        self.bytes = 0
        """Their bytes in UTF-8."""
        self.held: list[str] = []
        """Texts held back."""
        self.unread: Counter[str] = Counter()
        """Records of the files that cannot be read, by reason."""
        self.dropped: Counter[str] = Counter()
        """Documents of the sample that their corpus leaves out, by reason."""
        self._missing: Counter[str] = Counter()
        self._rejected: list[Record] = []

    def __iter__(self) -> Iterator[str]:
        """Yield the cleaned text of each document that the corpus would keep."""
        held_bytes = 0
        for number, file in enumerate(self._files, start=1):
            tell(f"{self._program}: reading {file.path} ({number} of {len(self._files)})")
            for text, is_held in self._texts(file):
                size = len(text.encode())
                if is_held and held_bytes < self._sample.held_bytes:
                    self.held.append(text)
                    held_bytes += size
                    continue
                self.documents += 1
                self.bytes += size
                yield text
        if not (self.documents or self.held) and (self.unread or self.dropped):
            raise self._nothing()

    def skipped(self) -> str:
        """Return what was not used, as a line for the end; "" if all was."""
        parts = []
        if self.unread:
            parts.append(f"records that cannot be read: {_counted(self.unread)}")
        if self.dropped:
            parts.append(f"documents of the sample that the corpus drops: {_counted(self.dropped)}")
        return f"not used: {'; '.join(parts)}" if parts else ""

    def _nothing(self) -> UserError:
        """Return the error of an input without a text to train on."""
        message = f"There is no text to train on; {self.skipped()}."
        if not self._rejected:
            return UserError(message)
        ((missing, _),) = self._missing.most_common(1)
        names = [field.name for field in fields_of(self._rejected)]
        return UserError(
            f"{message} The field {missing} was looked for; the records have {listed(names)}. Name "
            f"the one with the text, as in --corpus text --text-field {names[0]}, or give another "
            "--corpus"
        )

    def _texts(self, file: InputFile) -> Iterator[tuple[str, bool]]:
        """Yield the cleaned texts of the sample, and whether to hold each back."""
        corpus = self._corpora[file.source]
        given = given_level(corpus.options.clean, file.source)
        for record, is_held in self._chosen(file, corpus):
            try:
                documents = corpus.recipe.documents(record.value, corpus.options)
            except Rejected as rejection:
                self._reject(record, rejection)
                continue
            for document in documents:
                if document.reason is not None:
                    self.dropped[document.reason] += 1
                else:
                    text = document.prompt + document.text
                    yield clean(text, level_of(document, given)), is_held

    def _reject(self, record: Record, rejection: Rejected) -> None:
        partial = record.value
        self.unread[partial.reason if isinstance(partial, Partial) else str(rejection)] += 1
        self._missing[rejection.field] += 1
        if len(self._rejected) < _REJECTED:
            self._rejected.append(record)

    def _read(self, file: InputFile, reading: InputFormat) -> Iterator[Record]:
        """Yield the records of a file, and count what is none."""
        for split in splits(file, reading, split_bytes=file.bytes):
            for item in open_reader(split, reading):
                if isinstance(item, Record):
                    yield item
                else:
                    self.unread[item.reason] += 1

    def _chosen(self, file: InputFile, corpus: Corpus) -> Iterator[tuple[Record, bool]]:
        """Yield the records of the sample, and whether to hold each back."""
        records = self._read(file, corpus.reading)
        held_limit = hash_bound(self._sample.held_share)
        while batch := list(itertools.islice(records, _BATCH)):
            place = file.source, file.relative, np.array([record.offset for record in batch])
            samples = sample_hashes(*place, seed=self._sample.seed).tolist()
            holdouts = holdout_hashes(*place, seed=self._sample.seed).tolist()
            for record, sample, holdout in zip(batch, samples, holdouts, strict=True):
                if sample < self._limit:
                    yield record, holdout < held_limit


def _counted(reasons: Counter[str]) -> str:
    """Return how many there are, and of the most frequent reasons."""
    counts = ", ".join(f"{number:,} {reason}" for reason, number in reasons.most_common(4))
    return f"{reasons.total():,} ({counts})"
