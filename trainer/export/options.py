"""The flags of `python -m trainer.export`."""

from dataclasses import MISSING, dataclass
from pathlib import Path

from shards.commands.flags import WORD, count, local_path, option, positive, same_option
from shards.errors import UserError
from trainer.load_options import LoadOptions

TRANSFORMERS, SAFETENSORS = "hf", "safetensors"


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """A model to export, and the format of the files."""

    path: Path = option(MISSING, flag=WORD, metavar="RUN|CHECKPOINT", type=local_path)
    """Run, one of its step-N checkpoints, a published checkpoint, or a folder of transformers."""
    to: str = option(MISSING, choices=(TRANSFORMERS, SAFETENSORS), required=True)
    """Format of the files. hf: GPT-2 of transformers. safetensors: this trainer's names and
    shapes."""
    output: Path = option(MISSING, metavar="DIR", type=local_path, required=True)
    """Folder to create."""
    dtype: str = option("fp32", choices=("fp32", "bf16", "fp16"))
    """Data type of the weights."""
    shard_bytes: int | None = option(None, metavar="N", type=positive)
    """Split the weights into files of at most this size, such as 5G. Default: one file."""
    vocabulary: int | None = option(None, metavar="N", type=count)
    """hf: number of ids in use; the embedding rows after them are padding, and are left out.
    Default: all rows."""
    model: str | None = same_option(LoadOptions, "model")
    tokenizer: str | None = same_option(LoadOptions, "tokenizer")

    def __post_init__(self) -> None:
        """Refuse flags that the chosen format does not have.

        Raises:
            UserError: a flag does not belong to the format.
        """
        if self.vocabulary is not None and self.to != TRANSFORMERS:
            raise UserError(f"--vocabulary is for --to {TRANSFORMERS}, not {self.to}.")
