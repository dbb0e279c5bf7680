"""The shape of a model: named sizes, JSON files, and numbers of parameters and FLOPs.

The named sizes are those of THUDM/GLM (commit 4f61ed7, folder config), `gpt2-d12` is GPT-2 small
as llm.c trains it (`-e d12`), and `tiny` is a toy for a CPU.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any

from shards.commands.spelling import expected
from shards.errors import UserError
from shards.records import from_json
from trainer.json_file import is_file, read_object

VOCABULARY_MULTIPLE = 128
"""The number of embedding rows is a multiple of this, as in THUDM/GLM, which suits the matrix units
of GPUs."""
_SIZE_FIELDS = ("num_layers", "hidden_size", "num_heads", "vocab_size", "max_positions")
_RANGES = {"hidden_dropout": 1, "attention_dropout": 1, "layernorm_eps": 1, "init_std": 1000}
"""Upper bounds of real numbers, which must be at least 0 and below the bound."""
_MAX_COUNT = 2**24
"""The maximum of each count in a shape; anything above is a mistake."""


def padded_vocabulary(num_tokens: int) -> int:
    """Return the number of embedding rows for a vocabulary of `num_tokens` tokens."""
    return -(-num_tokens // VOCABULARY_MULTIPLE) * VOCABULARY_MULTIPLE


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The shape of a GLM: everything that its state dict and its logits depend on."""

    num_layers: int
    hidden_size: int
    num_heads: int
    vocab_size: int
    """The number of rows of the embedding: the tokenizer's vocabulary, padded to a multiple of
    128."""
    max_positions: int
    """The number of positions, P. Published files have P + 1 rows per position table."""
    block_positions: bool = True
    """Whether a second table embeds the position within a blank; else the model is a GPT-2."""
    hidden_dropout: float = 0.1
    """The dropout probability for embeddings and for the outputs of attention and feed-forward."""
    attention_dropout: float = 0.1
    """The dropout probability for attention weights. FlexAttention is used only if it is 0."""
    layernorm_eps: float = 1e-5
    init_std: float = 0.02

    def __post_init__(self) -> None:
        for name in _SIZE_FIELDS:
            if not 1 <= getattr(self, name) <= _MAX_COUNT:
                raise ValueError(f"{name} is {getattr(self, name)}; expected 1 to {_MAX_COUNT}")
        if self.hidden_size % self.num_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is not a multiple of num_heads {self.num_heads}"
            )
        if self.vocab_size % VOCABULARY_MULTIPLE:
            raise ValueError(
                f"vocab_size is {self.vocab_size}; expected a multiple of {VOCABULARY_MULTIPLE}, "
                f"here {padded_vocabulary(self.vocab_size)}"
            )
        for name, end in _RANGES.items():
            if not 0 <= getattr(self, name) < end:
                raise ValueError(f"{name} is {getattr(self, name)}; expected 0 <= {name} < {end}")

    @classmethod
    def named(cls, name: str) -> "ModelConfig":
        """Return the shape that `--model` names: one of `SIZES`, or a JSON file.

        The file holds this class's fields; fields with a default may be omitted.

        Raises:
            UserError: there is no such name, or the file does not describe a model.
        """
        if name in SIZES:
            return SIZES[name]
        if not name.endswith(".json"):
            raise UserError(
                f"--model {name} is neither a name nor a file that ends in .json: "
                f"{expected(name, SIZES)}."
            )
        return _from_file(Path(name))

    def with_vocabulary(self, num_tokens: int) -> "ModelConfig":
        """Return this shape with the padded vocabulary of a tokenizer with `num_tokens` tokens."""
        return replace(self, vocab_size=padded_vocabulary(num_tokens))

    @property
    def has_dropout(self) -> bool:
        """Whether training uses dropout."""
        return self.hidden_dropout > 0 or self.attention_dropout > 0

    @property
    def position_rows(self) -> int:
        """The number of rows of a position table; in a GLM, one more than there are positions."""
        return self.max_positions + 1 if self.block_positions else self.max_positions

    def num_parameters(self) -> int:
        """Return the number of parameters; embedding and output head share one matrix."""
        tables = self.position_rows * (2 if self.block_positions else 1)
        layer = 12 * self.hidden_size**2 + 13 * self.hidden_size
        rows = self.vocab_size + tables + 2  # 2: the last LayerNorm
        return rows * self.hidden_size + self.num_layers * layer

    def flops_per_token(self, length: int, *, target_share: float = 1.0) -> float:
        """Return the FLOPs of training on one token, forward and backward, with no recomputation.

        Each weight in a matrix product costs 6 FLOPs (2 forward, 4 backward); attention costs 12
        per layer, hidden unit and position, masked or not (PaLM, arXiv:2204.02311, appendix B).
        Table lookups cost nothing. Logits are computed only for tokens with loss.

        Args:
            length: the number of tokens in a sequence, including padding.
            target_share: the share of tokens with loss.
        """
        layers = 12 * self.num_layers * self.hidden_size**2
        head = self.vocab_size * self.hidden_size * target_share
        attention = 12 * self.num_layers * self.hidden_size * length
        return 6 * (layers + head) + attention


_GLM_SIZES = {
    "glm-base": (12, 768, 12, 30592, 512),
    "glm-large": (24, 1024, 16, 30592, 512),
    "glm-large-chinese": (24, 1024, 16, 50048, 1024),
    "glm-515m": (30, 1152, 18, 30592, 512),
    "glm-2b": (36, 2048, 32, 50304, 1024),
    "glm-10b": (48, 4096, 64, 50304, 1024),
    "glm-10b-chinese": (48, 4096, 64, 50048, 1024),
}
"""Layers, hidden size, heads, embedding rows and positions by name."""

SIZES: Mapping[str, ModelConfig] = {
    **{
        name: ModelConfig(
            num_layers=layers, hidden_size=h, num_heads=heads, vocab_size=rows, max_positions=p
        )
        for name, (layers, h, heads, rows, p) in _GLM_SIZES.items()
    },
    "gpt2-d12": ModelConfig(
        num_layers=12,
        hidden_size=768,
        num_heads=12,
        vocab_size=50304,
        max_positions=1024,
        block_positions=False,
        hidden_dropout=0.0,
        attention_dropout=0.0,
    ),
    "tiny": ModelConfig(
        num_layers=4,
        hidden_size=128,
        num_heads=4,
        vocab_size=4096,
        max_positions=256,
        hidden_dropout=0.0,
        attention_dropout=0.0,
    ),
}


def _from_file(path: Path) -> ModelConfig:
    if not is_file(path):
        raise UserError(f"there is no file {path}; --model takes a name or a JSON file.")
    content = read_object(path)
    defaults: dict[str, Any] = {
        field.name: field.default for field in fields(ModelConfig) if field.default is not MISSING
    }
    try:
        return from_json(ModelConfig, {**defaults, **content}, where=path.name)
    except ValueError as error:
        raise UserError(f"{path} does not describe a model: {error}.") from None
