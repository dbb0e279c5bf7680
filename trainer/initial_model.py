"""Makes a model with initial values on its device, in its dtype, without a whole fp32 copy."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from shards.sampling.permutation import derive, text_key
from trainer.deepspeed import FP32, ZERO_3, precision_of, stage_of
from trainer.distributed import DTYPES, Ranks
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig


def make_model(
    shape: ModelConfig,
    *,
    seed: int,
    checkpoint_activations: bool,
    deepspeed: Mapping[str, Any],
    ranks: Ranks,
    make: Callable[..., GLM] = GLM,
) -> GLM:
    """Return a model with initial values, on the device and in the dtype that it is trained in.

    No rank ever holds the whole model in fp32, because the modules are made one after another. At
    ZeRO stage 3 each rank keeps only its part. At lower stages only the first rank has the values,
    and DeepSpeed sends them to the other ranks when it makes its engine. `make` is the model's
    class.
    """
    from deepspeed.runtime.zero import Init  # noqa: PLC0415 - reads DS_ACCELERATOR on import

    key = seed_of(seed, "weights", 0, 0)
    if stage_of(deepspeed) == ZERO_3:
        torch.manual_seed(key)
        with Init(config_dict_or_path=dict(deepspeed)):
            return make(shape, checkpoint_activations=checkpoint_activations)
    with torch.device("meta"):
        model = make(shape, checkpoint_activations=checkpoint_activations)
    torch.manual_seed(key)
    fill(model, device=ranks.device, dtype=_dtype_of_weights(deepspeed), draws=ranks.is_first)
    return model


def fill(model: torch.nn.Module, *, device: torch.device, dtype: torch.dtype, draws: bool) -> None:
    """Allocate, one after another, the modules of a model that is on the meta device.

    Args:
        model: the model, whose modules draw their initial values in `reset_parameters`.
        device: the device that the parameters are moved to.
        dtype: the type of the parameters.
        draws: whether to draw initial values. They are drawn on the CPU in fp32, whatever the
            device and type.
    """
    for module in model.modules():
        reset = getattr(module, "reset_parameters", None)
        if reset is None:
            continue
        if draws:
            module.to_empty(device="cpu", recurse=False)
            reset()
            module.to(device, dtype)
        else:
            module.to(dtype).to_empty(device=device, recurse=False)


def _dtype_of_weights(deepspeed: Mapping[str, Any]) -> torch.dtype:
    """Return the dtype that DeepSpeed gives a model; fp32 if its settings have `data_types`."""
    name = None if "data_types" in deepspeed else precision_of(deepspeed)
    return DTYPES[name or FP32]


def seed_of(seed: int, purpose: str, *place: int) -> int:
    """Return a seed for PyTorch's generator.

    Args:
        seed: the seed of the run.
        purpose: a name, so that different purposes have different seeds.
        place: numbers such as step and rank.
    """
    key = np.array([text_key(seed, purpose)], np.uint64)
    for number in place:
        key = derive(key, np.array([number]))
    return int(key[0])
