"""The flags of `shards.run.Run`, whose defaults they have."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, fields

from shards.errors import UserError
from shards.flags import count, flag_of, option
from shards.mixture import Blend
from shards.run import BatchSize, Run

FIXED: Mapping[str, bool] = {"fixed": True}
"""Metadata of options that must stay the same when a run resumes."""
DATA, END, BATCH = "data and windows", "how long the run is", "batches, memory and precision"
"""Titles in `--help`."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What decides the samples of a run; None or () leaves it to `Run`."""

    data: tuple[str, ...] = option((), nargs="+", metavar="DATA", group=DATA)
    """DIR, DIR@n or DIR:SOURCE; all with =WEIGHT, or none. DIR may be hf:OWNER/NAME[@REVISION]"""
    data_from: tuple[tuple[str, ...], ...] = option(
        (), nargs="+", action="append", metavar=("POSITION", "DATA")
    )
    """the data from sample POSITION on; may be repeated"""
    objective: str | None = option(None, metavar="NAME", metadata=FIXED)
    """glm or causal"""
    length: int | None = option(None, type=count, metavar="L", metadata=FIXED)
    """positions of a window"""
    slack: int | None = option(None, type=count, metavar="N", metadata=FIXED)
    """tokens by which a cut may move to an end of a text"""
    scatters: int | None = option(None, type=count, metavar="S", metadata=FIXED)
    """pieces that the corpus is divided into"""
    seed: int | None = option(None, type=int, metavar="N", metadata=FIXED)
    """of the order of the windows and of dropout"""
    steps: int | None = option(None, type=count, metavar="N", group=END)
    """number of steps"""
    max_epochs: tuple[str, ...] = option((), nargs="+", metavar="DATA=N")
    """how often text may be read within --steps: DIR=4, DIR:SOURCE=1.5"""
    batch_size: tuple[str, ...] = option((), nargs="+", metavar="SIZE", group=BATCH)
    """samples in the global batch; STEP:SIZE changes it from that step on"""

    def as_run(self) -> Run:
        """Return the run that the flags describe.

        Raises:
            UserError: Data or batch size are missing, or a value is invalid.
        """
        missing = [flag_of(name) for name in ("data", "batch_size") if not getattr(self, name)]
        if missing:
            raise UserError(f"give {' and '.join(missing)}, or the file of a run's options.")
        later = [
            Blend(start=_whole(start, "--data-from"), data=tuple(data))
            for start, *data in self.data_from
        ]
        given = {
            each.name: getattr(self, each.name)
            for each in fields(RunOptions)
            if each.default is None and getattr(self, each.name) is not None
        }
        return Run(
            mixes=(Blend(start=0, data=tuple(self.data)), *later),
            batches=tuple(_batch_size(text) for text in self.batch_size),
            max_epochs=dict(_cap(text) for text in self.max_epochs),
            **given,
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
