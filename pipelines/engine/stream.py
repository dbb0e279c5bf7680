"""The pipeline of a watch: unbounded, of one shape on every engine that streams.

    ticks ─▶ look ─▶ judge (state of each group of files) ─▶ spread ─▶ map

A tick comes every few seconds; on each one a worker lists what lies in the watched places. Files
are judged with what the engine remembers of each; a complete one becomes tasks, which are spread
over the workers. Results are files, as in a batch. What the steps do is in the `Steps` that the
caller gives; here is how they are wired.

Files share a few groups, and what is remembered of a group is one value: with a key for each file,
an engine's own work for thousands of keys, states and timers takes longer than the mapping.

Ticks are those of Beam's PeriodicImpulse, but for two things. They end when the steps say so: an
engine cannot be relied on to cancel a job (Flink's session clusters let it run on). Then the
watermark passes everything, what is in flight is finished, and the job is done. And a bundle has
one tick: Beam's goes on in the same bundle as long as ticks are late, so that nothing would ever be
handed on where a look takes longer than the time between two.

What is remembered of a file is forgotten when it is of no more use, or an hour after its last
sighting.
"""

import pickle
import threading
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Protocol
from zlib import crc32

from pipelines.engine import beam
from pipelines.engine.beam import PipelineResult
from pipelines.engine.failure import one_line
from pipelines.engine.figures import Figures
from pipelines.engine.jobs import named_options, named_runner
from pipelines.engine.metrics import NAMESPACE, count
from pipelines.engine.task import last_line, run_packed
from pipelines.engine.workers import Workers
from shards.errors import UserError

FORGOTTEN_AFTER = 3600.0
"""Seconds after its last sighting until what is remembered of a file is forgotten."""

NUM_GROUPS = 64
"""Of files that are judged together: enough for the workers of a cluster."""

AGAIN_AFTER = 10.0
"""Seconds until a task is tried again while there is no storage that could even take a note."""

MOST_SILENCES = 10
"""How often in a row an engine may not answer for its job, asked once a second."""


Sightings = list[tuple[str, Any]]
"""Keys, and what was seen of each."""

Memories = dict[str, tuple[Any, float]]
"""By key: what is remembered, and when the key was sighted last, in seconds since 1970."""

_ENDS = {"DONE", "FAILED", "CANCELLED", "DRAINED", "UPDATED"}


class Steps(Protocol):
    """What the steps of the pipeline do; one object in each process."""

    def ended(self) -> bool:
        """Return whether there are to be no more ticks."""

    def look(self, now: float) -> Iterator[tuple[str, Any]]:
        """Yield key and sighting of what is to be judged."""

    def judge(self, key: str, sighting: Any, memory: Any) -> tuple[Any, list[Any]]:
        """Return what to remember of the key, and the tasks that begin now."""

    def forgets(self, key: str, memory: Any) -> bool:
        """Return whether what is remembered of a key is of no more use."""

    def fail(self, task: Any, message: str) -> bool:
        """Take note that a task failed; return whether that was possible."""

    def finished(self, task: Any) -> Figures:
        """Return what a finished task has made."""


@lru_cache(maxsize=1)
def _steps(payload: bytes) -> Steps:
    prepare, argument = pickle.loads(payload)
    steps: Steps = prepare(argument)
    return steps


# What Beam hands to a DoFn it finds by the defaults of its arguments.
_RESTRICTION: Any = beam.DoFn.RestrictionParam(beam.ImpulseSeqGenRestrictionProvider())
_WATERMARK: Any = beam.DoFn.WatermarkEstimatorParam(
    beam.ManualWatermarkEstimator.default_provider()
)
_MEMORIES = beam.ReadModifyWriteStateSpec("memories", beam.PickleCoder())
_MEMORIES_PARAM: Any = beam.DoFn.StateParam(_MEMORIES)


class Ticks(beam.DoFn):
    """A periodic impulse, until the steps have ended; ticks that are late are one."""

    def __init__(self, steps: bytes) -> None:
        self._payload = steps

    @beam.DoFn.unbounded_per_element()  # type: ignore[untyped-decorator] # Beam's has no types
    def process(
        self,
        element: Any,
        restriction_tracker: Any = _RESTRICTION,
        watermark_estimator: Any = _WATERMARK,
    ) -> Iterator[Any]:
        """Yield the tick that is due."""
        restriction = restriction_tracker.current_restriction()
        if _steps(self._payload).ended():
            # To claim what lies beyond the range ends it.
            restriction_tracker.try_claim(restriction.stop)
            return
        # What is left after a tick is a table of its own in Flink's memory for ever, and Flink
        # comes back to it at once, not when it is due: so the waiting is done here.
        start, _, seconds = element
        first = start.micros / 1e6
        due = first + seconds * restriction.start
        time.sleep(min(max(0.0, due - time.time()), seconds))
        number = max(restriction.start, int((time.time() - first) // seconds))
        if not restriction_tracker.try_claim(number):
            return
        tick = beam.Timestamp(first + seconds * number)
        watermark_estimator.set_watermark(tick)
        yield beam.TimestampedValue(tick, tick)
        restriction_tracker.defer_remainder(
            beam.Timestamp(max(first + seconds * (number + 1), time.time()))
        )


class Look(beam.DoFn):
    """Lists what is to be judged; ticks that come late, all at once, are one look."""

    def __init__(self, steps: bytes, seconds: float) -> None:
        self._payload = steps
        self._seconds = seconds
        self._last = 0.0
        self._waiting = beam.Metrics.gauge(NAMESPACE, "files looked at")

    def process(self, _: Any) -> Iterator[tuple[int, Sightings]]:
        """Yield the sightings of each group of files that has any."""
        now = time.time()
        if now - self._last < self._seconds / 2:
            return
        self._last = now
        groups: dict[int, Sightings] = {}
        for key, sighting in _steps(self._payload).look(now):
            groups.setdefault(crc32(key.encode()) % NUM_GROUPS, []).append((key, sighting))
        yield from groups.items()
        self._waiting.set(sum(map(len, groups.values())))


class Judge(beam.DoFn):
    """Decides which files are complete, by what is remembered of each."""

    def __init__(self, steps: bytes) -> None:
        self._payload = steps
        self._files = beam.Metrics.counter(NAMESPACE, "files taken")

    def process(
        self, element: tuple[int, Sightings], state: Any = _MEMORIES_PARAM
    ) -> Iterator[Any]:
        """Yield the tasks of the files of a group that are complete."""
        _, sightings = element
        steps, now = _steps(self._payload), time.time()
        memories: Memories = state.read() or {}
        due = []
        for key, sighting in sightings:
            memory, _ = memories.get(key, (None, now))
            memory, tasks = steps.judge(key, sighting, memory)
            memories[key] = memory, now
            due += tasks
            self._files.inc(bool(tasks))
        state.write(
            {
                key: (memory, seen)
                for key, (memory, seen) in memories.items()
                if now - seen < FORGOTTEN_AFTER and not steps.forgets(key, memory)
            }
        )
        yield from due


class Map(beam.DoFn):
    """Runs a task, and counts what it made; a task that fails does not end the stream."""

    def __init__(self, steps: bytes, run: bytes, children: int) -> None:
        self._payload = steps
        self._run = run
        self._children = children
        self._failed = beam.Metrics.counter(NAMESPACE, "tasks failed")
        self._seconds = beam.Metrics.distribution(NAMESPACE, "milliseconds from arrival to map")

    def process(self, task: Any) -> None:
        """Run one task."""
        steps = _steps(self._payload)
        while True:
            try:
                if self._children:
                    _pool(self._children).run(task, self._run)
                else:
                    run_packed(self._run, task)
                made = steps.finished(task)
                break
            except Exception as error:  # noqa: BLE001 - one file must not end the stream of all
                message = str(error) if isinstance(error, UserError) else last_line(error)
                if steps.fail(task, message):
                    self._failed.inc()
                    return
                time.sleep(AGAIN_AFTER)
        count(made)
        self._seconds.update(int(1000 * (time.time() - task.arrived)))


class _Pool:
    """Child processes for the threads of a process: Prism has one process for all of its work."""

    def __init__(self, children: int) -> None:
        self._free = [Workers(1, run_packed) for _ in range(children)]
        self._lock = threading.Condition()

    def run(self, task: Any, payload: bytes) -> None:
        """Run a task in a child, as on this machine's own workers."""
        with self._lock:
            while not self._free:
                self._lock.wait()
            worker = self._free.pop()
        try:
            worker.run_all([task], payload)
        finally:
            with self._lock:
                self._free.append(worker)
                self._lock.notify()


@lru_cache(maxsize=1)
def _pool(children: int) -> _Pool:
    return _Pool(children)


class Job:
    """A job of a watch on an engine."""

    def __init__(
        self,
        flags: Sequence[str],
        *,
        dataset: str,
        steps: bytes,
        run: bytes,
        children: int,
        seconds: float,
    ) -> None:
        """Submit it.

        Args:
            flags: Beam's own.
            dataset: The name of the dataset, for the job's.
            steps: `packed` function that returns the Steps, and its argument.
            run: What `packed` returns for the tasks.
            children: Processes that each worker process starts for its tasks; 0: none.
            seconds: Between two looks.

        Raises:
            Exception: The engine does not take it.
        """
        options = named_options(flags, dataset, "watch")
        options.view_as(beam.StandardOptions).streaming = True
        pipeline = beam.Pipeline(runner=named_runner(options), options=options)
        beginning = beam.Timestamp.now()
        ticks = (
            pipeline
            | "Begin" >> beam.Impulse()
            | "Span" >> beam.Map(lambda _: (beginning, beam.MAX_TIMESTAMP, seconds))
            | "Tick" >> beam.ParDo(Ticks(steps))
        )
        sightings = ticks | "Look for files" >> beam.ParDo(Look(steps, seconds)).with_output_types(
            tuple[int, Any]
        )
        tasks = sightings | "Choose files" >> beam.ParDo(Judge(steps))
        spread = tasks | "Spread over workers" >> beam.Reshuffle()
        _ = spread | "Map splits" >> beam.ParDo(Map(steps, run, children))
        self._result: PipelineResult = pipeline.run()
        self.name: str = options.view_as(beam.GoogleCloudOptions).job_name
        self.error = ""
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        """Ask for the state until the job has ended; Beam's own stream of states has a deadline."""
        silences = 0
        while silences < MOST_SILENCES:
            try:
                state = str(self._result.state)
                silences = 0
            except Exception as error:  # noqa: BLE001 - whatever it is, nobody answers
                silences += 1
                self.error = one_line(error, 300)
            else:
                self.error = "" if state == "DONE" else f"its state is {state}"
                if state in _ENDS:
                    break
            time.sleep(1)
        reason = self.error
        self.cancel()  # ends what runs here for the job
        self.error = reason

    @property
    def ended(self) -> bool:
        """Whether it has ended; `error` says why if that was not asked for."""
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """Ask the engine to cancel it; some do not."""
        try:
            self._result.cancel()
        except Exception as error:  # noqa: BLE001 - the engine may be gone
            self.error = one_line(error, 300)
