"""What is exported, and how: the flags of `trainer.export`."""

from dataclasses import MISSING, dataclass
from pathlib import Path

from shards.errors import UserError
from shards.flags import count, local_path, option, positive, same_option
from trainer.opening import Opening

TRANSFORMERS, SAFETENSORS, REFERENCE, LLMC = "hf", "safetensors", "reference", "llm.c"


@dataclass(frozen=True, kw_only=True)
class Exporting:
    """What is exported, and how; the flags of the command."""

    to: str = option(
        MISSING,
        "The form. hf: GPT-2 of transformers; safetensors: names and shape of ours; reference: "
        "THUDM/GLM's file; llm.c: its model.bin.",
        choices=(TRANSFORMERS, SAFETENSORS, REFERENCE, LLMC),
        required=True,
    )
    output: Path = option(
        MISSING, "The folder to make.", metavar="DIR", type=local_path, required=True
    )
    dtype: str = option("fp32", "The type of the weights.", choices=("fp32", "bf16", "fp16"))
    shard_bytes: int | None = option(
        None,
        "hf and safetensors: split the weights into files of at most this size (5G). Default: one "
        "file.",
        metavar="N",
        type=positive,
    )
    model_parallel: int | None = option(
        None,
        "reference: split the weights for this many ranks of model parallelism; 1 joins them.",
        metavar="N",
        type=positive,
    )
    vocabulary: int | None = option(
        None,
        "hf and llm.c: how many ids mean something; the embedding's rows after them are padding, "
        "which hf leaves out. Default: hf: all rows; llm.c: the tokenizer's own.",
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
        for flag, given, forms in (
            ("--shard-bytes", self.shard_bytes, (TRANSFORMERS, SAFETENSORS)),
            ("--model-parallel", self.model_parallel, (REFERENCE,)),
            ("--vocabulary", self.vocabulary, (TRANSFORMERS, LLMC)),
        ):
            if given is not None and self.to not in forms:
                raise UserError(f"{flag} is for --to {' and '.join(forms)}, not {self.to}.")
        if self.to == LLMC and self.dtype == "fp16":
            raise UserError(
                "--dtype fp16: llm.c reads none; give bf16, or fp32 for a build in FP32."
            )
