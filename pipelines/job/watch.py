"""A watch: one process that adds generations to a dataset as files arrive, until it is stopped.

scan ─▶ settled? ─▶ due? ─▶ append ─▶ sleep ─▶ scan …

Like --append, a watch keeps its state in the dataset, its ledger and the records in .work, and
continues from them after any interruption.
"""

import logging
import os
import signal
import statistics
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import FrameType

import pyarrow as pa

from pipelines.commit.commit import lag_of
from pipelines.commit.existing import dataset_inputs
from pipelines.corpus.options import Options
from pipelines.corpus.sources import Corpus, CorpusInputs, corpus_inputs, input_specs
from pipelines.corpus.spec import load_spec
from pipelines.job.append import check_base, grow, unfinished_files
from pipelines.job.arrivals import Arrivals, Name, Version
from pipelines.job.build import open_build
from pipelines.job.ready import check_ready
from pipelines.read.files import InputFile, input_paths
from pipelines.read.hub import is_hub_dataset
from pipelines.read.input_file import shown
from shards.commands.output import quantity
from shards.errors import UserError
from shards.maintenance.prune import remove_work
from shards.manifest import (
    WORK,
    Generation,
    Manifest,
    lock_dataset,
    read_current_manifest,
    sum_shards,
)

SCAN_SECONDS = 5.0
"""The seconds between two scans, unless scans take long (see SCAN_PAUSE_FACTOR)."""

SCAN_PAUSE_FACTOR = 20
"""The pause between two scans is at least this many times as long as the last scan took."""

LONGEST_PAUSE = 60.0
"""The maximum number of seconds between two attempts, or between two messages, while a problem
persists."""

SHOWN_EVERY = 10.0
"""The minimum number of seconds between two lines of progress."""

AHEAD_BYTES = 256 << 20
"""The total bytes of waiting files at which they are processed before their generation is due."""

_LOG = logging.getLogger("corpusmill")


def watch(module: str, options: Options) -> None:
    """Watch the inputs until the user or --until stops the watch; then commit the settled files.

    Args:
        module: The module that holds the corpus as CORPUS.
        options: Complete options, as `completed` returns them.

    Raises:
        UserError: The watch cannot start; the message says why and what to do.
    """
    check_ready(options, corpus=load_spec(module).name)
    for path in input_paths(input_specs(options)):
        if is_hub_dataset(path):
            raise UserError(
                "--watch watches folders, globs and URLs; to add the current state of a dataset of "
                f"the hub ({shown(path)}), use --append"
            )
    inputs, corpora = corpus_inputs(module, options)
    listing = inputs.list_files()
    listing.log_remarks()
    with lock_dataset(options.output):
        corpus, output = Corpus(module, options), options.output
        with open_build(corpus, corpora, files=()) as run:
            base = read_current_manifest(output)
            check_base(run.spec, base)
            run.announce()
            run.check_first(listing.files, base=base)
        with _stop_signals() as stop:
            Watch(corpus, corpora, inputs=inputs, unmatched=listing.unmatched).run(stop)


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C and SIGTERM set; a second signal ends this process at once."""
    stop = threading.Event()

    def handle(*_: int | FrameType | None) -> None:
        if stop.is_set():
            # An exception could interrupt a commit and release the lock before the commit ends.
            os.write(2, b"stopped at once: the same command continues from here\n")
            os._exit(130)
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass
class WatchTotals:
    """The amounts that the watch has committed since its start."""

    files: int = 0
    documents: int = 0
    tokens: int = 0
    generations: int = 0
    rate: float = 0.0
    """Tokens per second between the last two generations."""
    lags: list[float] = field(default_factory=list)
    """The median lag of each of the last hundred generations."""
    worst: float = 0.0
    since: float = field(default_factory=time.time)
    """When the last generation was committed, in seconds since 1970."""

    def add(self, generation: Generation, arrivals: Sequence[float]) -> None:
        """Count a generation whose files were first seen at these times."""
        made, now = sum_shards(generation.shards()), time.time()
        self.files += len(generation.inputs)
        self.documents += made.documents
        self.tokens += made.tokens
        self.generations += 1
        self.rate = made.tokens / max(now - self.since, 1.0)
        self.since = now
        if lag := lag_of(arrivals):
            self.lags = [*self.lags[-99:], lag["median"]]
            self.worst = max(self.worst, lag["worst"])


class Watch:
    """A watch that holds the lock on its output."""

    def __init__(
        self,
        corpus: Corpus,
        corpora: Mapping[str, Corpus],
        *,
        inputs: CorpusInputs,
        unmatched: Iterable[str] = (),
    ) -> None:
        """Prepare a watch.

        Args:
            corpus: The corpus whose command this is.
            corpora: The corpus of each source.
            inputs: The inputs that files arrive in.
            unmatched: As in `Arrivals`.
        """
        self._corpus = corpus
        self._corpora = corpora
        self._inputs = inputs
        self._options = corpus.options
        self._output = corpus.options.output
        self._arrivals = Arrivals(self._options.settle, unmatched=unmatched)
        self._tokens: dict[InputFile, int] = {}
        """The number of tokens of each waiting file that is already processed."""
        self._base: Manifest | None = read_current_manifest(self._output)
        self._dataset: Mapping[Name, Version | None] | None = None
        """The files of the dataset; None if they must be read from the manifest again."""
        self._totals = WatchTotals()
        self._scan_pause = SCAN_SECONDS
        """The number of seconds until the next scan."""
        self._pause = 0.0
        """The number of seconds until the next attempt, while a problem persists."""
        self._warned_at = self._shown = -LONGEST_PAUSE
        self._line = ""

    def run(self, stop: threading.Event) -> None:
        """Watch until stopped or until --until; then commit the files that have settled."""
        options, until = self._options, self._options.until
        _LOG.info(
            "watching %s: a generation every %s%s; Ctrl-C commits the settled files and ends",
            ", ".join(options.input),
            _duration(options.every),
            f", until {until.isoformat(timespec='seconds')}" if until else "",
        )
        while not (stop.is_set() or (until and datetime.now(UTC) >= until)):
            self._attempt()
            left = (until - datetime.now(UTC)).total_seconds() if until else LONGEST_PAUSE
            stop.wait(max(0.0, min(self._pause or self._scan_pause, left)))
        _LOG.info("ending: committing the settled files; press Ctrl-C again to stop at once")
        while not self._attempt(ending=True):
            time.sleep(self._pause)
        totals = self._totals
        _LOG.info(
            "the watch has ended: %s files, %s documents and %s tokens in %s generations added to "
            "%s; %s files are left for the next one",
            *(f"{n:,}" for n in (totals.files, totals.documents, totals.tokens)),
            f"{totals.generations:,}",
            self._output,
            f"{len(self._arrivals.first_seen()):,}",
        )

    def _attempt(self, *, ending: bool = False) -> bool:
        """Scan the inputs and do all work that is due; log an error at most once a minute."""
        try:
            self._scan_and_grow(ending=ending)
        except (UserError, OSError) as error:
            self._pause = min(max(1.0, 2 * self._pause), LONGEST_PAUSE)
            if time.monotonic() - self._warned_at >= LONGEST_PAUSE:
                self._warned_at = time.monotonic()
                _LOG.warning("waiting, then trying again: %s", error)
            return False
        if self._pause:
            self._pause, self._warned_at = 0.0, -LONGEST_PAUSE
            _LOG.info("the problem is solved: the watch continues")
        self._show()
        return True

    def _scan_and_grow(self, *, ending: bool) -> None:
        dataset = self._load_dataset()
        began = time.monotonic()
        listing = self._inputs.list_files()
        took, now = time.monotonic() - began, time.time()
        usual = min(SCAN_SECONDS, max(0.5, self._options.settle / 2))
        self._scan_pause = max(usual, SCAN_PAUSE_FACTOR * took)
        self._arrivals.scan(listing, dataset=dataset, now=now)
        begun = {*unfinished_files(self._base, listing.files, self._output)}
        ready = {file: at for file, at in self._arrivals.ready(now).items() if file not in begun}
        self._tokens = {file: n for file, n in self._tokens.items() if file in ready}
        due = self._is_due(ready, now) or (ending and bool(ready))
        if begun or due or self._is_processed_ahead(ready):
            self._grow([*begun], ready, left_out=listing.refused, due=due)
        if ending and not self._options.keep_segments:
            remove_work(self._output / WORK)

    def _is_due(self, ready: Mapping[InputFile, float], now: float) -> bool:
        """Return whether the files that are ready become a generation now."""
        failed = self._arrivals.failed()  # retried files do not delay the others
        waits = [now - at for file, at in ready.items() if file not in failed]
        return max(waits, default=-1.0) >= self._options.every

    def _is_processed_ahead(self, ready: Iterable[InputFile]) -> bool:
        """Return whether files of a later generation are to be processed now."""
        new = [file for file in ready if file not in self._tokens]
        again = not self._arrivals.failed().keys().isdisjoint(new)
        many = sum(file.bytes for file in new) >= AHEAD_BYTES
        return again or many

    def _grow(
        self,
        begun: Sequence[InputFile],
        ready: Mapping[InputFile, float],
        *,
        left_out: Mapping[InputFile, str],
        due: bool,
    ) -> None:
        """Add a generation if it is due, otherwise process files ahead; then end the workers."""
        with open_build(self._corpus, self._corpora, files=[*begun, *ready]) as run:
            later = self._arrivals.failed().items()
            run.left_out = {**left_out, **{file: why for file, why in later if file not in ready}}
            run.first_seen = self._arrivals.first_seen()
            try:
                grow(run, self._base, begun=begun, files=[*ready] if due else [])
                if not due:
                    self._tokens |= run.process_ahead([f for f in ready if f not in self._tokens])
            finally:
                self._dataset = None
                self._arrivals.record_attempts(self._tokens, failed=run.failed, now=time.time())
                pa.default_memory_pool().release_unused()  # frees the generation's tables
        self._load_dataset()

    def _load_dataset(self) -> Mapping[Name, Version | None]:
        """Return the files of the dataset, and count its new generations."""
        if self._dataset is None:
            before = len(self._base.generations) if self._base else 0
            self._base = read_current_manifest(self._output)
            seen = dataset_inputs(self._base, output=self._output) if self._base else {}
            first_seen = {file.name: at for file, at in self._arrivals.first_seen().items()}
            for generation in self._base.generations[before:] if self._base else ():
                names = [(entry.source, entry.path) for entry in generation.inputs]
                self._totals.add(generation, [first_seen[n] for n in names if n in first_seen])
            self._arrivals.forget(seen)
            self._dataset = seen
        return self._dataset

    def _show(self) -> None:
        """Show the line of progress if it has changed."""
        totals, failed = self._totals, self._arrivals.failed()
        waiting = self._arrivals.first_seen().keys() - failed
        number = len(self._base.generations) + 1 if self._base else 1
        mapped = f", {sum(self._tokens.values()):,} tokens processed" if self._tokens else ""
        lag = f"lag {_duration(statistics.median(totals.lags))} median" if totals.lags else ""
        line = " | ".join(
            [
                f"watch | {quantity(totals.files, 'file')}",
                f"{quantity(totals.documents, 'document')}",
                f"generation {number} open: {quantity(len(waiting), 'file')}, "
                f"{sum(file.bytes for file in waiting) / 1e6:,.1f} MB{mapped}",
                *([f"{lag}, {_duration(totals.worst)} worst"] if lag else []),
                *([f"{len(failed):,} failed"] if failed else []),
                f"{totals.rate:,.0f} tokens/s",
            ]
        )
        if line != self._line and time.monotonic() - self._shown >= SHOWN_EVERY:
            self._line, self._shown = line, time.monotonic()
            _LOG.info("%s", line)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    words = [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes)
    return " ".join([*words, *([f"{rest} s"] if rest or not words else [])])
