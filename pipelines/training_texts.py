"""Texts of a corpus to train something on: a sample, some of it held back to measure the result."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines.corpus.clean_level import given_level, level_of
from pipelines.corpus.document import Rejected
from pipelines.corpus.sources import Corpus
from pipelines.filters.clean import clean
from pipelines.inputs.files import InputFile
from pipelines.readers.reading import open_reader, splits
from pipelines.readers.record import Record
from pipelines.segments.identity import hash_bound, holdout_hashes, sample_hashes
from shards.errors import UserError
from shards.shown import tell

_BATCH = 1000


def check_new(path: Path, ending: str, library: str) -> None:
    """Check that a model can be written: its name has the ending of its library, and is free.

    Raises:
        UserError: It has another ending, or something is there.
    """
    if path.suffix != ending:
        raise UserError(f"--output {path}: the name of a {library} model has to end in {ending}.")
    if path.exists():
        raise UserError(f"{path} exists already: remove it or choose another --output.")


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

    def _texts(self, file: InputFile) -> Iterator[tuple[str, bool]]:
        """Yield the cleaned texts of the sample, and whether to hold each back."""
        corpus = self._corpora[file.source]
        given = given_level(corpus.options.clean, file.source)
        for record, is_held in self._chosen(file, corpus):
            try:
                documents = corpus.recipe.documents(record.value, corpus.options)
            except Rejected:
                continue
            for document in documents:
                if document.reason is None:
                    text = document.prompt + document.text
                    yield clean(text, level_of(document, given)), is_held

    def _chosen(self, file: InputFile, corpus: Corpus) -> Iterator[tuple[Record, bool]]:
        """Yield the records of the sample, and whether to hold each back."""
        reading = corpus.reading
        readers = (
            open_reader(split, reading) for split in splits(file, reading, split_bytes=file.bytes)
        )
        records = (item for reader in readers for item in reader if isinstance(item, Record))
        held_limit = hash_bound(self._sample.held_share)
        while batch := list(itertools.islice(records, _BATCH)):
            place = file.source, file.relative, np.array([record.offset for record in batch])
            samples = sample_hashes(*place, seed=self._sample.seed).tolist()
            holdouts = holdout_hashes(*place, seed=self._sample.seed).tolist()
            for record, sample, holdout in zip(batch, samples, holdouts, strict=True):
                if sample < self._limit:
                    yield record, holdout < held_limit
