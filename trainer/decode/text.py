"""Tokens as text, as they come: bytes that end within a character wait for the rest of it."""

import codecs
from collections.abc import Sequence

from trainer.tokenizer import TextTokenizer


def bytes_of(tokens: Sequence[int], tokenizer: TextTokenizer) -> bytes:
    """Return the bytes of tokens; a row of the embedding that is no token appears as ⟨number⟩.

    A model may have more rows than its tokenizer has tokens, and one that has learned little yet
    may choose them.
    """
    return b"".join(
        tokenizer.decode_bytes([token])
        if token < tokenizer.vocabulary_size
        else f"⟨{token}⟩".encode()
        for token in tokens
    )


def text_of(tokens: Sequence[int], tokenizer: TextTokenizer) -> str:
    """Return the text of tokens; bytes that are no character appear as U+FFFD."""
    return bytes_of(tokens, tokenizer).decode(errors="replace")


class StreamDecoder:
    """A text that grows token by token."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        """Begin with no text."""
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def add(self, token: int) -> str:
        """Return what a token completes."""
        return self._decoder.decode(bytes_of([token], self._tokenizer))

    def end(self) -> str:
        """Return what is left: U+FFFD for a character that never became whole."""
        return self._decoder.decode(b"", final=True)
