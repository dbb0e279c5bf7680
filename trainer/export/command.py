"""The command `python -m trainer.export RUN|CHECKPOINT --to FORM --output FOLDER`."""

from dataclasses import dataclass

from shards.commands.command import Command, log_plainly
from shards.commands.output import print_lines
from trainer.export.options import ExportOptions
from trainer.foreign_flags import FOREIGN_FLAGS


@dataclass(frozen=True, kw_only=True)
class Export(ExportOptions, Command):
    """Export a trained model to files that other programs read."""

    STOPPED = "nothing was exported"
    FOREIGN = FOREIGN_FLAGS

    def run(self) -> None:
        """Export the model; print a line about the model and a line for each file."""
        log_plainly()
        from trainer.export.export import export  # noqa: PLC0415  loads torch; --help needs none

        print_lines(export(self))
