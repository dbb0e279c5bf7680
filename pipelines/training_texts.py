"""A sample of a corpus's texts to train a model on; some are held back to measure the result.

Records become texts as in a run of the corpus, with the same readers, documents and repairs.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.corpus.batcher import DocumentBatcher, group_records
from pipelines.corpus.keywords import options_of_call
from pipelines.corpus.options import Options
from pipelines.corpus.sources import list_corpus_files
from pipelines.corpus.spec import find_corpus, load_spec
from pipelines.process.first_records import FirstFiles, check_sources
from pipelines.process.processor import Job
from pipelines.read.files import InputFile
from pipelines.read.formats import splits
from pipelines.segments.identity import hash_bound
from pipelines.segments.rows import QUARANTINE_REASONS, FilterResult
from pipelines.steps.clean import CleanStep
from pipelines.steps.step import split_result
from shards.commands.flags import count, flag_of, option, positive
from shards.commands.output import print_message
from shards.errors import UserError

_NOTHING = pa.scalar("", pa.large_string())
"""The separator between prompt and text."""


def check_new(path: Path, ending: str, library: str) -> None:
    """Check that a model's file name has its library's ending, and that no such file exists.

    Raises:
        UserError: The name does not have this ending, or the file exists.
    """
    if path.suffix != ending:
        raise UserError(f"--output {path}: the name of a {library} model has to end in {ending}.")
    if path.exists():
        raise UserError(f"{path} exists already: remove it or choose another --output.")


@dataclass(frozen=True, kw_only=True)
class TrainingTextOptions:
    """The corpus to train on, and the choice of its texts."""

    corpus: str = option("text", metavar="NAME")
    """Corpus of the input, or a module that defines one."""
    text_field: str = option("", metavar="NAME")
    """For --corpus text: field with the text; meta.body is the field body inside meta."""
    format: str = option("", metavar="FORMAT")
    """For --corpus text: format of the files, such as json, jsonl or lines."""
    skip_unreadable: bool = option(False)
    """Continue without files that cannot be read."""
    sample_bytes: int = option(100_000_000, type=positive, metavar="N")
    """Bytes to use of each input; they are kept in memory."""
    seed: int = option(0, type=count, metavar="N")
    """Random seed."""

    def of_corpus(self, inputs: Sequence[str]) -> tuple[str, Options]:
        """Return the module of the corpus, and the corpus's options for reading.

        Args:
            inputs: The values of the corpus's --input.

        Raises:
            UserError: The corpus does not exist, or does not have one of the options.
        """
        module = find_corpus(self.corpus, where="--corpus")
        options_class = load_spec(module).options
        given = {"text_field": self.text_field, "format": self.format}
        own = {name: value for name, value in given.items() if value}
        for name in own.keys() - {field.name for field in fields(options_class)}:
            raise UserError(
                f"{flag_of(name)}: the corpus {self.corpus} knows its field and format; leave the "
                "flag out, or give --corpus text"
            )
        options = options_of_call(options_class, own, module=module)
        return module, replace(
            options,
            input=tuple(inputs),
            skip_unreadable=self.skip_unreadable,
            seed=self.seed,
            max_reject_rate=1.0,
        )


@dataclass(frozen=True, kw_only=True)
class HoldOut:
    """The choice of the texts that are held back, by hashes of their records."""

    share: float
    """The share of records to hold back."""
    max_bytes: int
    """Bytes of held-back text after which all further texts are trained on."""


class TrainingTexts:
    """The texts of a sample of a corpus's records.

    Iterating yields the texts to train on, and stores the held-back texts in `held_out`.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        options: TrainingTextOptions,
        *,
        hold_out: HoldOut,
        program: str,
    ) -> None:
        """Prepare to read the texts.

        Args:
            inputs: The values of the corpus's --input.
            options: The texts to read.
            hold_out: The texts to hold back.
            program: The program's name, which starts the log lines about the input.

        Raises:
            UserError: An option is not valid, or the input cannot be read.
        """
        self.module, of_corpus = options.of_corpus(inputs)
        """The module of the corpus."""
        listing, corpora = list_corpus_files(self.module, of_corpus)
        self._files = listing.files
        total = sum(file.bytes for file in self._files)
        share = min(1.0, options.sample_bytes / max(total, 1))
        self._corpora = {
            name: replace(corpus, options=replace(corpus.options, sample=share))
            for name, corpus in corpora.items()
        }
        self._hold_out = hold_out
        self._program = program
        self.documents = 0
        """The number of documents yielded so far."""
        self.bytes = 0
        """The bytes of the yielded documents in UTF-8."""
        self.held_out: list[str] = []
        """The texts that are held back."""
        self._unused: Counter[str] = Counter()
        """The number of unused records and documents of the sample, by reason."""

    def __iter__(self) -> Iterator[str]:
        """Yield the cleaned text of each document that the corpus would keep."""
        self._check_first()
        held_bytes = 0
        for number, file in enumerate(self._files, start=1):
            print_message(f"{self._program}: reading {file.path} ({number} of {len(self._files)})")
            for text, is_held in self._texts(file):
                size = len(text.encode())
                if is_held and held_bytes < self._hold_out.max_bytes:
                    self.held_out.append(text)
                    held_bytes += size
                    continue
                self.documents += 1
                self.bytes += size
                yield text
        if not (self.documents or self.held_out):
            raise UserError(f"There is no text to train on; {self.skipped() or 'nothing is read'}.")

    def skipped(self) -> str:
        """Return the log line about unused texts; "" if all were used."""
        names = {
            "records of the sample that cannot be read": QUARANTINE_REASONS.intersection(
                self._unused
            ),
            "documents of the sample that the corpus drops": self._unused.keys()
            - QUARANTINE_REASONS,
        }
        parts = [
            f"{name}: {_counted({each: self._unused[each] for each in reasons})}"
            for name, reasons in names.items()
            if reasons
        ]
        return f"not used: {'; '.join(parts)}" if parts else ""

    def _check_first(self) -> None:
        """Check that some of the first records of each source can be read.

        Raises:
            UserError: No record can be read; the message shows what the records contain.
        """
        job = Job(options=Options(), corpora=self._corpora, versions={})
        for warning in check_sources(FirstFiles(job=job, files=self._files)):
            print_message(f"{self._program}: {warning}")

    def _texts(self, file: InputFile) -> Iterator[tuple[str, bool]]:
        """Yield each cleaned text of the sample, and whether to hold the text back."""
        corpus = self._corpora[file.source]
        batcher, clean = DocumentBatcher(corpus), CleanStep()
        cut = splits(file, corpus.input_format, split_bytes=file.bytes)
        for pieces in group_records((split, corpus.reader(split)) for split in cut):
            read, unread = split_result(batcher.to_batch(batcher.sample(pieces, Counter())))
            kept, dropped = split_result(clean(read))
            self._count(unread, dropped)
            texts = pc.binary_join_element_wise(kept["prompt"], kept["text"], _NOTHING)
            limit = hash_bound(self._hold_out.share)
            held_out = [holdout < limit for holdout in kept["holdout"].to_pylist()]
            yield from zip(texts.to_pylist(), held_out, strict=True)

    def _count(self, *results: FilterResult) -> None:
        for result in results:
            self._unused.update(result.reasons.to_pylist())


def _counted(reasons: Mapping[str, int]) -> str:
    """Return a phrase with the total number, and the numbers for the most frequent reasons."""
    most = Counter(reasons).most_common(4)
    counts = ", ".join(f"{number:,} {reason}" for reason, number in most)
    return f"{sum(reasons.values()):,} ({counts})"
