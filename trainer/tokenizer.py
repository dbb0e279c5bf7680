"""Converts text to token ids and back, with the tokenizer that made a model's data.

This is the only module of `trainer` that imports from `pipelines`: it uses the tokenizers there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.tokenizers.tokenizer import Tokenizer, load_tokenizer, restore_tokenizer
from shards.errors import UserError
from shards.reader import Dataset
from shards.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True)
class PromptFormat:
    """The properties of a model that decide how prompts are encoded."""

    causal: bool = False
    """Whether the model is causal: it has no blanks and reads from left to right."""
    positions: int = 2**24
    """The number of positions of the model."""
    task_mask: bool = True
    """Whether the model knows [sMASK] and [gMASK] in addition to [MASK]."""


class TextTokenizer:
    """A tokenizer for the prompts and answers of a model."""

    def __init__(self, spec: str, tokenizer: Tokenizer | None = None) -> None:
        """Load a tokenizer.

        Args:
            spec: the tokenizer, as for `--tokenizer` of the pipelines: sentencepiece:FILE,
                tiktoken:NAME or hf:FILE.
            tokenizer: the tokenizer if it is already loaded; `spec` is then only its name.

        Raises:
            UserError: there is no such tokenizer, or it cannot be used.
        """
        self.spec = spec
        self._tokenizer = load_tokenizer(spec) if tokenizer is None else tokenizer
        self._table = self._tokenizer.vocabulary()
        self._vocabulary = Vocabulary(self._table)

    @classmethod
    def of_data(cls, dataset: Dataset) -> "TextTokenizer | None":
        """Return the tokenizer that made a dataset; None if the dataset does not contain it.

        Raises:
            DamageError: the tokenizer in the dataset is damaged.
            UserError: the tokenizer cannot be loaded here.
        """
        content, manifest = dataset.vocabulary.tokenizer, dataset.manifest
        if not content:
            return None
        where = str(dataset.directory / manifest.vocabulary.path)
        restored = restore_tokenizer(manifest.tokenizer, content, where=where)
        return cls(f"{manifest.tokenizer.name} of {dataset.directory}", restored)

    @property
    def special(self) -> Mapping[str, int]:
        """The ids of special tokens by role: eos, pad, cls, mask, smask, gmask, sop, eop, …."""
        return self._tokenizer.special

    @property
    def sha256(self) -> str:
        """The checksum of the tokenizer in manifests and checkpoints."""
        return self._tokenizer.fingerprint

    @property
    def vocabulary_size(self) -> int:
        """The number of ids, including command tokens and padding."""
        return self._tokenizer.vocabulary_size

    def pieces(self) -> list[bytes]:
        """Return the bytes of each id that text is encoded to, and the name of eos.

        The ids of command tokens come after these.
        """
        count = max(self._tokenizer.pieces, self.special["eos"] + 1)
        pieces: list[bytes] = self._table["bytes"][:count].to_pylist()
        return pieces

    def transformers_json(self) -> str | None:
        """Return the `tokenizer.json` for transformers; None if no such file can express it."""
        return self._tokenizer.transformers_json()

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text without eos; names of special tokens are plain text.

        Raises:
            UserError: the tokenizer cannot encode the text.
        """
        tokens, _, failures = self._tokenizer.encode_batch([text])
        for _, why in failures:
            raise UserError(f"{self.spec} cannot encode the text {text[:60]!r}: {why}.")
        ids: list[int] = tokens.tolist()
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids; special tokens appear as ⟨name⟩."""
        return self._vocabulary.decode(ids)

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of ids; the last character may be incomplete."""
        return self._vocabulary.decode_bytes(ids)
