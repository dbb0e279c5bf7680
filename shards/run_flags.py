"""The flags of `shards.run.Run`, whose defaults they have."""

import argparse
from functools import partial

from shards.command import Parser
from shards.errors import UserError
from shards.flags import count, flag_of
from shards.mixture import Mix
from shards.run import BatchSize, Run

_GIVEN = ("seed", "scatters", "objective", "length", "slack", "steps")
"""Flags named like their field."""

DATA, END, BATCH = "data and windows", "how long the run is", "batches, memory and precision"
"""Titles in `--help`."""


def add_run_flags(parser: Parser) -> None:
    """Add the flags; those not given leave nothing in the namespace."""
    data, end, batch = (
        partial(parser.group(title).add_argument, default=argparse.SUPPRESS)
        for title in (DATA, END, BATCH)
    )
    data(
        "--data",
        nargs="+",
        metavar="DATA",
        help="DIR, DIR@n or DIR:SOURCE; all with =WEIGHT, or none",
    )
    data(
        "--data-from",
        nargs="+",
        action="append",
        metavar=("POSITION", "DATA"),
        help="the data from sample POSITION on; may be repeated",
    )
    data("--objective", metavar="NAME", help="glm or causal")
    data("--length", type=count, metavar="L", help="positions of a window")
    data(
        "--slack",
        type=count,
        metavar="N",
        help="tokens by which a cut may move to an end of a text",
    )
    data("--scatters", type=count, metavar="S", help="pieces that the corpus is divided into")
    data("--seed", type=int, metavar="N", help="of the order of the windows and of dropout")
    end("--steps", type=count, metavar="N", help="number of steps")
    end(
        "--max-epochs",
        nargs="+",
        metavar="DATA=N",
        help="how often text may be read within --steps: DIR=4, DIR:SOURCE=1.5",
    )
    batch(
        "--batch-size",
        nargs="+",
        metavar="SIZE",
        help="samples in the global batch; STEP:SIZE changes it from that step on",
    )


def run_of(options: argparse.Namespace) -> Run:
    """Return the run that flags describe.

    Raises:
        UserError: Data or batch size are missing, or a value is invalid.
    """
    given = vars(options)
    missing = [flag_of(name) for name in ("data", "batch_size") if name not in given]
    if missing:
        raise UserError(f"give {' and '.join(missing)}, or the file of a run's options.")
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
