"""What is exported, and how: the flags of `trainer.export`."""

from dataclasses import MISSING, dataclass
from pathlib import Path

from shards.errors import UserError
from shards.flags import count, local_path, option, positive, same_option
from trainer.opening import Opening

TRANSFORMERS, SAFETENSORS = "hf", "safetensors"


@dataclass(frozen=True, kw_only=True)
class Exporting:
    """What is exported, and how; the flags of the command."""

    to: str = option(
        MISSING,
        "The form. hf: GPT-2 of transformers; safetensors: names and shape of ours.",
        choices=(TRANSFORMERS, SAFETENSORS),
        required=True,
    )
    output: Path = option(
        MISSING, "The folder to make.", metavar="DIR", type=local_path, required=True
    )
    dtype: str = option("fp32", "The type of the weights.", choices=("fp32", "bf16", "fp16"))
    shard_bytes: int | None = option(
        None,
        "Split the weights into files of at most this size (5G). Default: one file.",
        metavar="N",
        type=positive,
    )
    vocabulary: int | None = option(
        None,
        "hf: how many ids mean something; the embedding's rows after them are padding and left "
        "out. Default: all rows.",
        metavar="N",
        type=count,
    )
    model: str | None = same_option(Opening, "model")
    tokenizer: str | None = same_option(Opening, "tokenizer")

    def __post_init__(self) -> None:
        """Refuse what a form does not have.

        Raises:
            UserError: a flag does not belong to it.
        """
        if self.vocabulary is not None and self.to != TRANSFORMERS:
            raise UserError(f"--vocabulary is for --to {TRANSFORMERS}, not {self.to}.")
