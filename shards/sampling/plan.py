"""The options that decide which samples each step trains on; a run saves them as JSON.

step ── batches ──▶ positions ── seed, scatters, mixes, window ──▶ samples

The fields of `DataConfig` are flags of commands; `sampling_plan` makes a `SamplingPlan` of them.
"""

import argparse
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from shards.commands.flags import count, flag_of, option, same_option
from shards.commands.spelling import expected
from shards.errors import UserError
from shards.records import from_json, to_json
from shards.sampling.mixture import Blend, WeightedData, epoch_caps, open_mixture, parse_data
from shards.sampling.sampler import Sampler
from shards.sampling.windows import WindowSpec, causal_windows, glm_windows
from shards.storage.files import read_json, write_json

NAME = "run.json"
"""The name of the file with a training run's options in its folder."""

GLM = "glm"
CAUSAL = "causal"


FIXED: Mapping[str, bool] = {"fixed": True}
"""Metadata of options that must stay the same when a run resumes."""
DATA, END, BATCH = "data and windows", "length of the run", "batches, memory and precision"
"""Titles in `--help`."""


@dataclass(frozen=True, kw_only=True)
class BatchSize:
    """The size of the global batch, beginning at a step."""

    step: int
    """The step at which this size begins; the first step of a run is 0."""
    size: int
    """The number of samples in a batch."""


@dataclass(frozen=True, kw_only=True)
class SamplingPlan:
    """The options that decide the samples of every step, independently of the machines.

    Raises:
        UserError: a value is out of range.
    """

    mixes: tuple[Blend, ...]
    """The data to draw, by ascending start; the first blend starts at 0."""
    batches: tuple[BatchSize, ...]
    """The batch sizes by ascending step; the first size begins at step 0."""
    seed: int = option(0, type=int, metavar="N", metadata=FIXED)
    """Random seed for window order and dropout."""
    scatters: int = option(1, type=count, metavar="S", metadata=FIXED)
    """Number of parts (scatters) that the corpus is divided into; a node needs only some of
    them."""
    objective: str = option(GLM, metavar="NAME", metadata=FIXED)
    """Training objective: glm or causal."""
    length: int = option(1024, type=count, metavar="L", metadata=FIXED)
    """Positions per window; with causal: tokens that the model sees."""
    slack: int | None = option(None, type=count, metavar="N", metadata=FIXED)
    """Number of tokens by which a window boundary may move to the end of a text, with glm. Default:
    1/32 of a window."""
    max_epochs: Mapping[str, float] = field(default_factory=dict)
    """The maximum number of epochs over text in all `steps`, by DIR or DIR:SOURCE."""
    steps: int | None = option(None, type=count, metavar="N")
    """Number of steps; --max-epochs requires it."""
    followed: int | None = None
    """The position up to which switches to newer manifests are decided; None if the run does
    not follow newer manifests."""

    def __post_init__(self) -> None:
        _check_ascending([blend.start for blend in self.mixes], "blends", unit="position")
        _check_ascending([batch.step for batch in self.batches], "batch sizes", unit="step")
        if (smallest := min(batch.size for batch in self.batches)) < 1:
            raise UserError(f"a batch must have at least one sample, not {smallest}.")
        if self.objective not in (GLM, CAUSAL):
            raise UserError(
                f"there is no objective {self.objective!r}: "
                f"{expected(self.objective, (GLM, CAUSAL))}."
            )
        if self.max_epochs and self.steps is None:
            raise UserError("a maximum of epochs (--max-epochs) needs a number of steps (--steps).")

    @classmethod
    def load(cls, path: Path) -> "SamplingPlan":
        """Load the plan that was saved to a file, or to NAME in a folder.

        Raises:
            UserError: there is no such file, or it does not contain a plan.
        """
        path = path / NAME if path.is_dir() else path
        if not path.is_file():
            raise UserError(
                f"there is no file {path}: give the folder of a training run, or its {NAME}."
            )
        content = read_json(path)
        try:
            return from_json(cls, content, where="run")
        except (ValueError, UserError) as error:
            raise UserError(f"{path} describes no run: {str(error).rstrip('.')}.") from error

    def save(self, path: Path) -> None:
        """Write the plan as JSON, atomically."""
        write_json(path, to_json(self))

    def with_data(self, change: Callable[[WeightedData], WeightedData]) -> "SamplingPlan":
        """Return a copy of the plan in which `change` is applied to each of its data."""

        def changed(text: str) -> str:
            return str(change(parse_data(text)))

        return replace(
            self,
            mixes=tuple(
                replace(blend, data=tuple(map(changed, blend.data))) for blend in self.mixes
            ),
            max_epochs={changed(text): cap for text, cap in self.max_epochs.items()},
        )

    @property
    def window(self) -> WindowSpec:
        """The specification by which shards are cut into windows.

        Raises:
            UserError: length and slack do not fit together.
        """
        try:
            if self.objective == GLM:
                return glm_windows(self.length, slack=self.slack)
            return causal_windows(self.length)
        except ValueError as error:
            raise UserError(f"{error}.") from error

    def sampler(self) -> Sampler:
        """Open the data and return their sampler.

        Raises:
            UserError: data do not exist, or weights, scatters or caps do not fit them.
        """
        window = self.window
        mixture = open_mixture(self.mixes, stride=window.stride)
        return Sampler(
            mixture.streams,
            seed=self.seed,
            num_scatters=self.scatters,
            window=window,
            stages=mixture.stages,
            epoch_caps=epoch_caps(self.max_epochs, mixture.streams),
            end=None if self.steps is None else self.position_of(self.steps),
        )

    def batch_size(self, step: int) -> int:
        """Return the number of samples of a step, counted from 0."""
        following = bisect_right(self.batches, step, key=lambda batch: batch.step)
        return self.batches[following - 1].size

    def position_of(self, step: int) -> int:
        """Return the position of the first sample of a step, the first step being 0."""
        return sum((end - first) * size for first, end, size in self._spans(step))

    def step_of(self, position: int) -> int:
        """Return the step whose batch has the sample at a position."""
        for first, end, size in self._spans(position + 1):
            if position < (end - first) * size:
                return first + position // size
            position -= (end - first) * size
        raise AssertionError("a step has at least one sample")

    def _spans(self, until: int) -> Iterator[tuple[int, int, int]]:
        """Yield first step, end and batch size of each range of steps with equal batches."""
        ends = (*(batch.step for batch in self.batches[1:]), until)
        for batch, end in zip(self.batches, ends, strict=True):
            if batch.step < until:
                yield batch.step, min(end, until), batch.size


def _check_ascending(starts: Sequence[int], what: str, *, unit: str) -> None:
    if not starts or starts[0] != 0:
        raise UserError(f"the {what} of a run must start at {unit} 0, not at {list(starts)[:1]}.")
    if list(starts) != sorted(set(starts)):
        raise UserError(f"the {what} of a run must ascend by {unit}; they start at {list(starts)}.")


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The flags that decide the samples of a run."""

    data: tuple[str, ...] = option((), nargs="+", metavar="DATA", group=DATA)
    """Data to train on: DIR, DIR@N or DIR:SOURCE, all with =WEIGHT or none. DIR may be
    hf:OWNER/NAME[@REVISION]."""
    data_from: tuple[tuple[str, ...], ...] = option(
        (), nargs="+", action="append", metavar=("POSITION", "DATA")
    )
    """Data to use from sample POSITION on; may be repeated."""
    objective: str = same_option(SamplingPlan, "objective")
    length: int | None = same_option(SamplingPlan, "length", default=None)
    slack: int | None = same_option(SamplingPlan, "slack")
    scatters: int = same_option(SamplingPlan, "scatters")
    seed: int = same_option(SamplingPlan, "seed")
    steps: int | None = same_option(SamplingPlan, "steps", group=END)
    max_epochs: tuple[str, ...] = option((), nargs="+", metavar="DATA=N")
    """Maximum number of times to read a text within --steps: DIR=4, DIR:SOURCE=1.5."""
    batch_size: tuple[str, ...] = option((), nargs="+", metavar="SIZE", group=BATCH)
    """Global batch size in samples; STEP:SIZE changes it from that step on."""

    def sampling_plan(self) -> SamplingPlan:
        """Return the plan that the flags describe.

        Raises:
            UserError: Data or batch size are missing, or a value is invalid.
        """
        missing = [flag_of(name) for name in ("data", "batch_size") if not getattr(self, name)]
        if missing:
            raise UserError(
                f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing."
            )
        later = [
            Blend(start=_whole(start, "--data-from"), data=tuple(data))
            for start, *data in self.data_from
        ]
        names = {one.name for one in fields(SamplingPlan) if "flag" in one.metadata}
        same = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return SamplingPlan(
            mixes=(Blend(start=0, data=tuple(self.data)), *later),
            batches=tuple(_batch_size(text) for text in self.batch_size),
            max_epochs=dict(_cap(text) for text in self.max_epochs),
            **same,
        )


def _batch_size(text: str) -> BatchSize:
    step, _, size = text.rpartition(":")
    return BatchSize(step=_whole(step or "0", "--batch-size"), size=_whole(size, "--batch-size"))


def _cap(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        return name, float(number)
    except ValueError:
        raise UserError(f"--max-epochs {text}: write DIR=4 or DIR:SOURCE=1.5.") from None


def _whole(text: str, flag: str) -> int:
    try:
        return count(text)
    except argparse.ArgumentTypeError as error:
        raise UserError(f"{flag}: {error}.") from None
