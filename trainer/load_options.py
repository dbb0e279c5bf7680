"""The flags of all commands that open a trained model."""

from dataclasses import dataclass

from shards.commands.flags import option

OPENED = "loading the model"
"""The title of these flags in `--help`."""


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """Options for opening a trained model."""

    model: str | None = option(None, metavar="NAME", group=OPENED)
    """Shape of the model, as for trainer.train; only a published checkpoint without config.json
    needs it."""
    tokenizer: str | None = option(None, metavar="SPEC")
    """Tokenizer of the model's data, as for the pipelines (sentencepiece:FILE, tiktoken:NAME,
    hf:FILE). Default: the one recorded in the data."""
    dtype: str = option("auto", choices=("auto", "fp32", "bf16", "fp16"))
    """Data type of the weights. auto: bf16 where the device supports it, else fp32."""
    device: str | None = option(None, metavar="NAME")
    """Device to run on: cuda, cuda:1, cpu. Default: an accelerator if there is one."""
