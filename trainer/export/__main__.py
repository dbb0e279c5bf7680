"""The command `python -m trainer.export RUN|CHECKPOINT --to FORM --output FOLDER`."""

import argparse
import sys
from collections.abc import Sequence

from shards.command import Parser, add_flags, log_plainly, print_text
from shards.flags import local_path, options_of
from shards.interrupt import ended_by_interrupt
from trainer.export.exporting import Exporting
from trainer.foreign_flags import FOREIGN_FLAGS


def main(argv: Sequence[str]) -> int:
    """Export what the command line names and return the exit code."""
    log_plainly()
    return print_text("trainer.export", lambda: _run(argv), stopped="nothing was exported")


def _run(argv: Sequence[str]) -> str:
    parser = Parser(
        prog="python -m trainer.export",
        old=FOREIGN_FLAGS,
        description="Write a trained model as files that other programs read.",
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument(
        "path",
        type=local_path,
        metavar="RUN|CHECKPOINT",
        help="a run's folder, one of its step-N, a published checkpoint, or a folder of "
        "transformers",
    )
    add_flags(parser, Exporting)
    given = parser.parse_args(argv)
    options = Exporting(**options_of(Exporting, vars(given)))
    with ended_by_interrupt():
        from trainer.export.export import export  # noqa: PLC0415  loads torch; --help needs none
    return "\n".join(export(given.path, options))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
