"""How a trained model is opened: flags of all commands that use one."""

from dataclasses import dataclass

from shards.commands.flags import option

OPENED = "how the model is opened"
"""Their title in `--help`."""


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """How a trained model is opened; the flags of all commands that use one."""

    model: str | None = option(None, metavar="NAME", group=OPENED)
    """The model's shape, as of trainer.train: only a published checkpoint without config.json needs
    it."""
    tokenizer: str | None = option(None, metavar="SPEC")
    """The tokenizer of the model's data, as of the pipelines (sentencepiece:FILE, tiktoken:NAME,
    hf:FILE). Default: the one that the data hold."""
    dtype: str = option("auto", choices=("auto", "fp32", "bf16", "fp16"))
    """The type of the weights. auto: bf16 where the device supports it, else fp32."""
    device: str | None = option(None, metavar="NAME")
    """Where: cuda, cuda:1, cpu. Default: an accelerator if there is one."""
