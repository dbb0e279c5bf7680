"""Texts to token ids and back, with the tokenizer that made a model's data.

The only place where this wing reads text: it borrows the tokenizers of the pipelines.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.tokenizers.tokenizer import Tokenizer, load_tokenizer, restore_tokenizer
from shards.errors import UserError
from shards.reader import Dataset
from shards.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True)
class PromptFormat:
    """How a model reads prompts."""

    causal: bool = False
    """From left to right only."""
    positions: int = 2**24
    """How many it has."""
    task_mask: bool = True
    """It knows [sMASK] and [gMASK] besides [MASK]."""


class TextTokenizer:
    """A tokenizer, as a model's prompts and answers need it."""

    def __init__(self, spec: str, tokenizer: Tokenizer | None = None) -> None:
        """Load a tokenizer.

        Args:
            spec: as `--tokenizer` of the pipelines: sentencepiece:FILE, tiktoken:NAME, hf:FILE.
            tokenizer: already loaded; `spec` is only its name then.

        Raises:
            UserError: there is none, or it cannot be used.
        """
        self.spec = spec
        self._tokenizer = load_tokenizer(spec) if tokenizer is None else tokenizer
        self._table = self._tokenizer.vocabulary()
        self._vocabulary = Vocabulary(self._table)

    @classmethod
    def of_data(cls, dataset: Dataset) -> "TextTokenizer | None":
        """Return the tokenizer that made a dataset; None if the dataset does not keep it.

        Raises:
            DamageError: its tokenizer is damaged.
            UserError: its tokenizer cannot be loaded here.
        """
        content, manifest = dataset.vocabulary.tokenizer, dataset.manifest
        if not content:
            return None
        where = str(dataset.directory / manifest.vocabulary.path)
        restored = restore_tokenizer(manifest.tokenizer, content, where=where)
        return cls(f"{manifest.tokenizer.name} of {dataset.directory}", restored)

    @property
    def special(self) -> Mapping[str, int]:
        """Ids by role: eos, pad, cls, mask, smask, gmask, sop, eop and more."""
        return self._tokenizer.special

    @property
    def sha256(self) -> str:
        """Its checksum in manifests and checkpoints."""
        return self._tokenizer.fingerprint

    @property
    def vocabulary_size(self) -> int:
        """How many ids there are, command tokens and padding included."""
        return self._tokenizer.vocabulary_size

    def pieces(self) -> list[bytes]:
        """Return the bytes of each id of a text, and its end's name; command tokens come later."""
        count = max(self._tokenizer.pieces, self.special["eos"] + 1)
        pieces: list[bytes] = self._table["bytes"][:count].to_pylist()
        return pieces

    def transformers_json(self) -> str | None:
        """Return the `tokenizer.json` for transformers; None if its kind cannot be written so."""
        return self._tokenizer.transformers_json()

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without an end; names of special tokens are plain text.

        Raises:
            UserError: the tokenizer cannot encode it.
        """
        tokens, _, failures = self._tokenizer.encode_batch([text])
        for _, why in failures:
            raise UserError(f"{self.spec} cannot encode the text {text[:60]!r}: {why}.")
        ids: list[int] = tokens.tolist()
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids; special ones appear as ⟨name⟩."""
        return self._vocabulary.decode(ids)

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of ids, which may end within a character."""
        return self._vocabulary.decode_bytes(ids)
