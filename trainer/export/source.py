"""What is exported: the weights of a checkpoint, checked, one tensor at a time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from shards.errors import UserError
from trainer.model.model import parameter_shapes
from trainer.trained import Origin
from trainer.weights.weights import read_weights


@dataclass(frozen=True, kw_only=True, eq=False)
class Tensors:
    """Named tensors, of which each is made when it is asked for."""

    shapes: Mapping[str, torch.Size]
    """By name, in the order in which they are written."""
    make: Callable[[str], Tensor]
    dtype: torch.dtype
    """What they are converted to."""
    lacks_head: bool = False
    """Whether a classifier's head lies beside them in the checkpoint, which no form has."""

    def read(self, name: str) -> Tensor:
        """Return a tensor.

        Raises:
            UserError: it has values that are not finite, or that its type cannot hold.
        """
        value = self.make(name)
        converted = value.to(self.dtype)
        if bool(converted.isfinite().all()):
            return converted
        if bool(value.isfinite().all()):
            raise UserError(
                f"{name} has values up to {value.abs().max().item():.3g}, which "
                f"{self.dtype} cannot hold: give --dtype bf16 or fp32."
            )
        raise UserError(
            f"{name} has values that are NaN or infinite: the run had diverged by then. Export an "
            "earlier checkpoint: RUN/step-N."
        )

    def renamed(self, shapes: Mapping[str, torch.Size], make: Callable[[str], Tensor]) -> "Tensors":
        """Return others that are made of these, of the same type."""
        return replace(self, shapes=shapes, make=make)


def open_tensors(origin: Origin, dtype: torch.dtype) -> Tensors:
    """Return the parameters of a model by their names here.

    Raises:
        UserError: the files hold another model than `origin` says.
        DamageError: a file is damaged.
    """
    weights = read_weights(origin.path, vocab_size=origin.shape.vocab_size)
    shapes = parameter_shapes(origin.shape)
    weights.check(shapes, extend_positions=False)
    return Tensors(shapes=shapes, make=weights.read, dtype=dtype, lacks_head=weights.has_head)
