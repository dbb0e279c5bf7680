"""How a trained model is opened: flags of all commands that use one."""

from dataclasses import dataclass

from shards.flags import option

OPENED = "how the model is opened"
"""Their title in `--help`."""


@dataclass(frozen=True, kw_only=True)
class Opening:
    """How a trained model is opened; the flags of all commands that use one."""

    model: str | None = option(
        None,
        "The model's shape, as of trainer.train: needed for a published checkpoint only.",
        metavar="NAME",
        group=OPENED,
    )
    tokenizer: str | None = option(
        None,
        "The tokenizer of the model's data, as of the pipelines (sentencepiece:FILE, "
        "tiktoken:NAME, hf:FILE). Default: the one that the data hold.",
        metavar="SPEC",
    )
    dtype: str = option(
        "auto",
        "What the weights are computed in. auto: bf16 where the device supports it, else fp32.",
        choices=("auto", "fp32", "bf16", "fp16"),
    )
    device: str | None = option(
        None, "Where: cuda, cuda:1, cpu. Default: an accelerator if there is one.", metavar="NAME"
    )
