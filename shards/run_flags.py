"""The flags of `shards.run.Run`, whose defaults they have."""

import argparse

from shards.errors import UserError
from shards.flags import count
from shards.mixture import Mix
from shards.run import BatchSize, Run

_GIVEN = ("seed", "scatters", "objective", "length", "slack", "steps")
"""Flags that have the name of their field."""


def add_run_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags; those that are not given leave nothing in the namespace."""
    flags = parser.add_argument_group("the options of a run", argument_default=argparse.SUPPRESS)
    flags.add_argument(
        "--data",
        nargs="+",
        metavar="DATA",
        help="DIR, DIR@n or DIR:SOURCE; all with =WEIGHT, or none",
    )
    flags.add_argument(
        "--data-from",
        nargs="+",
        action="append",
        metavar=("POSITION", "DATA"),
        help="the data from so many samples on; may be repeated",
    )
    flags.add_argument(
        "--batch-size",
        nargs="+",
        metavar="SIZE",
        help="samples in the global batch; STEP:SIZE for another from a step on",
    )
    flags.add_argument("--seed", type=int, metavar="N")
    flags.add_argument("--scatters", type=count, metavar="S", help="pieces that the corpus lies in")
    flags.add_argument("--objective", metavar="NAME", help="glm or causal")
    flags.add_argument("--length", type=count, metavar="L", help="positions of a window")
    flags.add_argument(
        "--slack", type=count, metavar="N", help="tokens behind its place that a cut is looked for"
    )
    flags.add_argument(
        "--max-epochs",
        nargs="+",
        metavar="DATA=N",
        help="how often text may be read in all --steps: DIR=4, DIR:SOURCE=1.5",
    )
    flags.add_argument("--steps", type=count, metavar="N", help="after how many steps the run ends")


def run_of(options: argparse.Namespace) -> Run:
    """Return the run that flags describe.

    Raises:
        UserError: data or batch size are not given, or a value is not what it should be.
    """
    given = vars(options)
    if "data" not in given or "batch_size" not in given:
        raise UserError("name a file with a run's options, or give --data and --batch-size.")
    later = [
        Mix(start=_whole(start, "--data-from"), data=tuple(data))
        for start, *data in given.get("data_from", ())
    ]
    return Run(
        mixes=(Mix(start=0, data=tuple(given["data"])), *later),
        batches=tuple(_batch_size(text) for text in given["batch_size"]),
        max_epochs=dict(_cap(text) for text in given.get("max_epochs", ())),
        **{name: given[name] for name in _GIVEN if name in given},
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
