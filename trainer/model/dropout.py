"""Dropout that belongs to the samples, whichever rank computes them, and beside whichever others.

    seed, step ─▶ slot of the global batch ─▶ key of a sample ─▶ word of a place and a token
                                                                  x odd number of a unit ─▶ keep it?

A mask is a pure function of these, so any number of ranks and micro-batches of any size and width
drop the same units, and so does a layer that is computed again for its gradients. There is no
state, and compilers fuse it all. Words come from splitmix64, as everywhere in `shards.order`; the
product modulo 2^32 is multiply-shift hashing (Dietzfelbinger et al., J. Algorithms 25, 1997): seen
over tokens, any two units are dropped independently of each other.

PyTorch's fused attention on a GPU makes masks of its own, from a seed of the micro-batch.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from shards.order.permutation import derive, text_key
from trainer.model.sizes import ModelConfig

_GAMMA = 0x9E3779B97F4A7C15 - 2**64
_FACTORS = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)
"""Of splitmix64, as signed numbers."""
_SHIFTS = (30, 27, 31)
_UNITS_KEY = 1
_SITE, _HEAD = 2**40, 2**24
"""Strides of a place's number: sites, heads, tokens."""


@dataclass(frozen=True)
class Seeds:
    """What decides the masks of some samples."""

    keys: Tensor
    """int64[b], on the model's device."""
    kernel: int | None = None
    """What kernels that draw their own are seeded with; None: PyTorch's generator goes on."""

    @classmethod
    def of_slots(
        cls, seed: int, step: int, slots: range, *, device: torch.device | None = None
    ) -> "Seeds":
        """Return the seeds of samples in these slots of a step's global batch."""
        base = derive(np.array([text_key(seed, "dropout")], np.uint64), [step])
        keys = derive(base, np.arange(slots.start, slots.stop))
        return cls(torch.from_numpy(keys.view(np.int64)).to(device), int(keys[0]) >> 8)

    @classmethod
    def random(cls, num_samples: int, device: torch.device) -> "Seeds":
        """Return seeds drawn from PyTorch's generator."""
        return cls(torch.randint(-(2**63), 2**63 - 1, (num_samples,), device=device))


class Dropout:
    """The masks of some samples, at all places of a model.

    What hashes is done at once, outside of what is compiled: a compiler would take the constants
    for sizes.
    """

    def __init__(self, seeds: Seeds, config: ModelConfig, *, tokens: int) -> None:
        """Prepare the masks of samples of so many tokens."""
        self.kernel = seeds.kernel
        self.is_in_kernel = seeds.keys.device.type != "cpu"
        """Whether kernels draw the masks of attention weights."""
        device = seeds.keys.device
        self._units = _units(max(config.hidden_size, tokens), device)
        sites = 1 + 2 * config.num_layers
        places = torch.arange(sites, device=device)[:, None] * _SITE
        tokens_of = torch.arange(tokens, device=device)
        self._words = _words(seeds.keys[:, None], (places + tokens_of)[:, None])
        if config.attention_dropout and not self.is_in_kernel:
            layers = torch.arange(sites, sites + config.num_layers, device=device)
            heads = torch.arange(config.num_heads, device=device)
            places = layers[:, None, None] * _SITE + heads[:, None] * _HEAD + tokens_of
            self._weight_words = _words(seeds.keys[:, None, None], places[:, None])

    def hidden(self, hidden: Tensor, probability: float, site: int) -> Tensor:
        """Return hidden states [b, tokens, width] with units dropped and the others scaled up.

        Args:
            hidden: the states.
            probability: of each unit to be dropped.
            site: 0 for the embeddings, 2 l + 1 and 2 l + 2 for what layer l adds.
        """
        if not probability:
            return hidden
        return _drop(hidden, self._words[site], self._units, probability)

    def weights(self, weights: Tensor, probability: float, layer: int) -> Tensor:
        """Return attention weights [b, heads, tokens, tokens] with some dropped."""
        return _drop(weights, self._weight_words[layer], self._units, probability)


def _drop(values: Tensor, words: Tensor, units: Tensor, probability: float) -> Tensor:
    """Return values [..., n] of which each is 0 or scaled up; words [...], units [n or more]."""
    units = units[: values.shape[-1]]
    limit = round(probability * 2**32) - 2**31
    kept = words.unsqueeze(-1) * units >= limit
    return (values * kept).mul_(1 / (1 - probability))


def _words(keys: Tensor, places: Tensor) -> Tensor:
    """Return int32 words of keys and places, int64; they broadcast."""
    words = keys + (places + 1) * _GAMMA
    for shift, factor in zip(_SHIFTS, (*_FACTORS, None), strict=True):
        words = words ^ ((words >> shift) & ((1 << (64 - shift)) - 1))
        if factor is not None:
            words = words * factor
    return (words >> 32).to(torch.int32)


def _units(num_units: int, device: torch.device) -> Tensor:
    """Return the odd numbers of units, int32."""
    key = torch.tensor(_UNITS_KEY, device=device)
    return _words(key, torch.arange(num_units, device=device)) | 1
