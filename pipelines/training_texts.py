"""Texts of a corpus to train something on: a sample, some of it held back to measure the result.

Records become texts as in a run of the corpus: the same readers, documents and repairs.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.corpus.batcher import Intake, group_records
from pipelines.corpus.keywords import options_of_call
from pipelines.corpus.options import Options
from pipelines.corpus.recipe import find_corpus, load_recipe
from pipelines.corpus.sources import match_corpora
from pipelines.process.first_records import FirstFiles, check_sources
from pipelines.process.processor import Job
from pipelines.read.files import InputFile
from pipelines.read.formats import splits
from pipelines.segments.identity import hash_bound
from pipelines.segments.rows import REJECTS, FilterResult
from pipelines.steps.clean import CleanStep
from pipelines.steps.step import split_result
from shards.commands.flags import count, flag_of, option, positive
from shards.commands.shown import tell
from shards.errors import UserError

_NOTHING = pa.scalar("", pa.large_string())
"""Between prompt and text."""


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
class TrainingTextOptions:
    """Which texts of which corpus to train on."""

    corpus: str = option("text", metavar="NAME")
    """the corpus of the input, or a module that has one"""
    text_field: str = option("", metavar="NAME")
    """the field with the text, of corpus text; meta.body means body in meta"""
    format: str = option("", metavar="FORMAT")
    """format of the files of corpus text: json, jsonl, lines and so on"""
    skip_unreadable: bool = option(False)
    """continue without files that cannot be read"""
    sample_bytes: int = option(100_000_000, type=positive, metavar="N")
    """how much of each input to take; it is held in memory"""
    seed: int = option(0, type=count, metavar="N")
    """seed of all that is random"""

    def of_corpus(self, inputs: Sequence[str]) -> tuple[str, Options]:
        """Return the module of the corpus, and its options that say what to read.

        Args:
            inputs: As --input of the corpus.

        Raises:
            UserError: There is no such corpus, or it has no such option or value.
        """
        module = find_corpus(self.corpus, where="--corpus")
        options_class = load_recipe(module).options
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
class Held:
    """Which texts are held back; the hashes of their records decide."""

    share: float
    """Of the records."""
    most_bytes: int
    """Larger hashes are trained on."""


class TrainingTexts:
    """The texts of a sample of a corpus's records.

    Iterating yields the texts to train on and keeps some others back in `held`.
    """

    def __init__(
        self, inputs: Sequence[str], options: TrainingTextOptions, *, holding: Held, program: str
    ) -> None:
        """Prepare to read.

        Args:
            inputs: As --input of the corpus.
            options: The texts to read.
            holding: Which texts to hold back.
            program: Begins the lines that say what is read.

        Raises:
            UserError: An option does not fit, or the input cannot be read.
        """
        self.module, of_corpus = options.of_corpus(inputs)
        """The module of the corpus."""
        self._files, corpora = match_corpora(self.module, of_corpus)
        total = sum(file.bytes for file in self._files)
        share = min(1.0, options.sample_bytes / max(total, 1))
        self._corpora = {
            name: replace(corpus, options=replace(corpus.options, sample=share))
            for name, corpus in corpora.items()
        }
        self._holding = holding
        self._program = program
        self.documents = 0
        """Documents yielded so far."""
        self.bytes = 0
        """Their bytes in UTF-8."""
        self.held: list[str] = []
        """Texts held back."""
        self._unused: Counter[str] = Counter()
        """Records and documents of the sample that are left out, by reason."""

    def __iter__(self) -> Iterator[str]:
        """Yield the cleaned text of each document that the corpus would keep."""
        self._check_first()
        held_bytes = 0
        for number, file in enumerate(self._files, start=1):
            tell(f"{self._program}: reading {file.path} ({number} of {len(self._files)})")
            for text, is_held in self._texts(file):
                size = len(text.encode())
                if is_held and held_bytes < self._holding.most_bytes:
                    self.held.append(text)
                    held_bytes += size
                    continue
                self.documents += 1
                self.bytes += size
                yield text
        if not (self.documents or self.held):
            raise UserError(f"There is no text to train on; {self.skipped() or 'nothing is read'}.")

    def skipped(self) -> str:
        """Return the last line about unused texts; "" if all were used."""
        names = {
            "records of the sample that cannot be read": REJECTS.intersection(self._unused),
            "documents of the sample that the corpus drops": self._unused.keys() - REJECTS,
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
            UserError: None can be; the message says what they hold.
        """
        job = Job(options=Options(), corpora=self._corpora, versions={})
        for warning in check_sources(FirstFiles(job=job, files=self._files)):
            tell(f"{self._program}: {warning}")

    def _texts(self, file: InputFile) -> Iterator[tuple[str, bool]]:
        """Yield the cleaned texts of the sample, and whether to hold each back."""
        corpus = self._corpora[file.source]
        intake, clean = Intake(corpus), CleanStep()
        cut = splits(file, corpus.reading, split_bytes=file.bytes)
        for pieces in group_records((split, corpus.reader(split)) for split in cut):
            read, unread = split_result(intake.read(intake.sampled(pieces, Counter())))
            kept, dropped = split_result(clean(read))
            self._count(unread, dropped)
            texts = pc.binary_join_element_wise(kept["prompt"], kept["text"], _NOTHING)
            limit = hash_bound(self._holding.share)
            held = [holdout < limit for holdout in kept["holdout"].to_pylist()]
            yield from zip(texts.to_pylist(), held, strict=True)

    def _count(self, *verdicts: FilterResult) -> None:
        for verdict in verdicts:
            self._unused.update(verdict.reasons.to_pylist())


def _counted(reasons: Mapping[str, int]) -> str:
    """Return how many there are, and of the most frequent reasons."""
    most = Counter(reasons).most_common(4)
    counts = ", ".join(f"{number:,} {reason}" for reason, number in most)
    return f"{sum(reasons.values()):,} ({counts})"
