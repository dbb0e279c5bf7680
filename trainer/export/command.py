"""The command `python -m trainer.export RUN|CHECKPOINT --to FORM --output FOLDER`."""

from dataclasses import MISSING, dataclass
from pathlib import Path

from shards.command import Command, log_plainly
from shards.errors import UserError
from shards.flags import WORD, count, local_path, option, positive, same_option
from shards.shown import print_lines
from trainer.foreign_flags import FOREIGN_FLAGS
from trainer.load_options import LoadOptions

TRANSFORMERS, SAFETENSORS = "hf", "safetensors"


@dataclass(frozen=True, kw_only=True)
class Export(Command):
    """Write a trained model as files that other programs read."""

    STOPPED = "nothing was exported"
    OLD = FOREIGN_FLAGS

    path: Path = option(MISSING, flag=WORD, metavar="RUN|CHECKPOINT", type=local_path)
    """a run's folder, one of its step-N, a published checkpoint, or a folder of transformers"""
    to: str = option(MISSING, choices=(TRANSFORMERS, SAFETENSORS), required=True)
    """The form. hf: GPT-2 of transformers; safetensors: names and shape of ours."""
    output: Path = option(MISSING, metavar="DIR", type=local_path, required=True)
    """The folder to make."""
    dtype: str = option("fp32", choices=("fp32", "bf16", "fp16"))
    """The type of the weights."""
    shard_bytes: int | None = option(None, metavar="N", type=positive)
    """Split the weights into files of at most this size (5G). Default: one file."""
    vocabulary: int | None = option(None, metavar="N", type=count)
    """hf: how many ids mean something; the embedding's rows after them are padding and left out.
    Default: all rows."""
    model: str | None = same_option(LoadOptions, "model")
    tokenizer: str | None = same_option(LoadOptions, "tokenizer")

    def __post_init__(self) -> None:
        """Refuse what a form does not have.

        Raises:
            UserError: a flag does not belong to it.
        """
        if self.vocabulary is not None and self.to != TRANSFORMERS:
            raise UserError(f"--vocabulary is for --to {TRANSFORMERS}, not {self.to}.")

    def run(self) -> None:
        """Export the model, with a line about it and one for each file."""
        log_plainly()
        from trainer.export.export import export  # noqa: PLC0415  loads torch; --help needs none

        print_lines(export(self))
