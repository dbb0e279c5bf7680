"""The description of a step that a transform carries; each process loads the step once.

The step itself is never pickled, because it has models.
"""

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from pipelines.corpus.versions import segment_versions
from pipelines.segments.rows import FilterResult
from pipelines.steps.step import Step
from shards.errors import UserError

_LOADING = threading.Lock()


@dataclass(frozen=True, kw_only=True, eq=False)
class StepSpec:
    """The class and arguments of a step, and facts about the step from the driver."""

    make: Callable[..., Step]
    """The step's class."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """The keyword arguments of the class."""
    name: str = ""
    """The name of the transform, for messages."""
    needs: Sequence[str] = ()
    """The columns that batches must have."""
    adds: Sequence[str] = ()
    """The columns that the step adds, except for those of metrics."""
    fields: tuple[pa.Field, ...] = ()
    """The columns of the step's metrics."""
    driver_facts: Mapping[str, Any] = field(default_factory=dict)
    """The fingerprints and library versions in the driver."""
    identity: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Identifies this use of the step; a process keeps one step per identity."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StepSpec) and other.identity == self.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def checked(self, name: str) -> "StepSpec":
        """Load the step in the driver, and return the spec with its name and the facts.

        Raises:
            UserError: The step cannot be loaded.
        """
        step = self.loaded().step
        return replace(
            self,
            name=name,
            needs=step.needs,
            adds=step.adds,
            fields=step.fields,
            driver_facts=worker_facts(step),
        )

    def loaded(self) -> "LoadedStep":
        """Return the step of this process.

        Raises:
            UserError: The step cannot be loaded, or this worker has a different model or library.
        """
        with _LOADING:
            return _loaded(self)


class LoadedStep:
    """A step of this process; threads of the runner call it one at a time."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.name = step.name
        self._lock = threading.Lock()

    def __call__(self, batch: pa.RecordBatch) -> FilterResult:
        """Return the step's verdict."""
        with self._lock:
            return self.step(batch)


@lru_cache(maxsize=64)
def _loaded(spec: StepSpec) -> LoadedStep:
    step = spec.make(**spec.arguments)
    check_worker_facts(worker_facts(step), spec.driver_facts)
    return LoadedStep(step)


def worker_facts(step: Step) -> dict[str, Any]:
    """Return the facts that must be equal in all workers: versions, and fingerprints of models."""
    versions = {f"{name} library": version for name, version in step.library_versions.items()}
    return {**step.fingerprints, **segment_versions({}, {}), **versions}


def check_worker_facts(worker: Mapping[str, Any], driver: Mapping[str, Any]) -> None:
    """Check that a worker has the same files and libraries as the driver.

    Args:
        worker: The facts of the worker, by name.
        driver: The facts of the driver when it made the pipeline.

    Raises:
        UserError: A fact differs.
    """
    for name, value in driver.items():
        if worker.get(name) != value:
            raise UserError(
                f"this worker has {name} {worker.get(name)}, the pipeline was made with {value}: "
                "the texts would depend on which worker judged them. Give all machines the same "
                "files and library versions"
            )
