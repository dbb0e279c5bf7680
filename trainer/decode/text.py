"""Tokens as text, as they come: what is not whole yet waits.

That is: bytes that end within a character; an emoji, which a joiner, a skin tone or the second
letter of a flag may follow; a character without width, which acts only between certain others.
"""

import codecs
import re
from collections.abc import Sequence

from trainer.tokenizer import TextTokenizer

_LETTER = "\U0001f1e6-\U0001f1ff"
"""Of a flag: two of them are one."""
_EMOJI = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_CHANGES = "\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"
"""What may follow an emoji: text or picture, a frame, skin tones, the tags of a region's flag."""
_ONE = rf"(?:(?![{_LETTER}])[{_EMOJI}][{_CHANGES}]*)"
_SHOWN_AS_ONE = re.compile(rf"[{_LETTER}]{{2}}|{_ONE}(?:\u200d{_ONE})*\u200d?|.", re.DOTALL)
"""What is shown as one, one after another."""
_OPEN = re.compile(rf"[{_LETTER}]|(?![{_LETTER}])[{_EMOJI}].*|[\u200b-\u200d]", re.DOTALL)
"""Of these, what the next character may still change."""


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


class Unfolding:
    """A text that grows token by token."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        """Begin with no text."""
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""

    def add(self, token: int) -> str:
        """Return what a token completes."""
        text = self._held + self._decoder.decode(bytes_of([token], self._tokenizer))
        *_, last = ["", *_SHOWN_AS_ONE.findall(text)]
        self._held = last if _OPEN.fullmatch(last) else ""
        return text.removesuffix(self._held)

    def end(self) -> str:
        """Return what is left: U+FFFD for a character that never became whole."""
        return self._held + self._decoder.decode(b"", final=True)
