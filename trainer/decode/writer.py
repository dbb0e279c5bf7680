"""A model that writes: texts in, their blanks filled."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.decode.decoding import Decoding
from trainer.decode.filling import Filling
from trainer.decode.prompt import Prompt, Reading, make_prompt
from trainer.decode.reader import Reader
from trainer.decode.search import draw_keys, fill
from trainer.decode.text import StreamDecoder, text_of
from trainer.tokenizer import TextTokenizer

OnText = Callable[[int, str], None]
"""Called with the number of a prompt in its batch, and the next part of its text."""


@dataclass(frozen=True, kw_only=True)
class Generation:
    """A prompt with its blanks filled."""

    prompt: str
    """As it was given."""
    text: str
    """The whole of it."""
    marks: tuple[str, ...]
    """Of its blanks: [MASK], [sMASK], [gMASK]; nothing if the model is causal."""
    texts: tuple[str, ...]
    """What fills its blanks."""
    fillings: tuple[Filling, ...]

    def json(self) -> dict[str, Any]:
        """Return it as it stands in JSON lines."""
        blanks = []
        for mark, text, filling in zip(self.marks, self.texts, self.fillings, strict=True):
            blank = {"mark": mark, "text": text, "finish": filling.finish}
            score = {} if filling.score is None else {"score": filling.score}
            blanks.append({**blank, **score, "tokens": filling.tokens})
        return {"prompt": self.prompt, "text": self.text, "blanks": blanks}


class Writer:
    """A model with its tokenizer, and how it writes."""

    def __init__(
        self, reader: Reader, tokenizer: TextTokenizer, decoding: Decoding, reading: Reading
    ) -> None:
        """Take a model.

        Args:
            reader: the model.
            tokenizer: its own.
            decoding: how tokens are chosen.
            reading: how it was trained to read.
        """
        self._reader = reader
        self._tokenizer = tokenizer
        self._decoding = decoding
        self._reading = reading

    def prompt(self, text: str) -> Prompt:
        """Return the prompt that a text is.

        Raises:
            UserError: the tokenizer lacks a token, or the text has no place in the model.
        """
        return make_prompt(text, self._tokenizer, self._reading)

    def write(
        self, prompts: Sequence[Prompt], *, first: int = 0, on_text: OnText | None = None
    ) -> list[Generation]:
        """Return prompts with their blanks filled.

        Args:
            prompts: a batch.
            first: the number of the first of them among all; what is drawn depends on it and on
                the seed, and not on the batch.
            on_text: hears of every prompt's text as it grows; with beams, when it is whole.
        """
        keys = draw_keys(self._decoding.seed, range(first, first + len(prompts)))
        on_token = None
        if on_text is not None:
            on_token = _GrowingTexts(prompts, self._tokenizer, on_text).add
        filled = fill(self._reader, prompts, self._decoding, keys=keys, on_token=on_token)
        return [self._told(*pair) for pair in zip(prompts, filled, strict=True)]

    def _told(self, prompt: Prompt, fillings: Sequence[Filling]) -> Generation:
        texts = [text_of(filling.tokens, self._tokenizer) for filling in fillings]
        behind = [text + part for text, part in zip(texts, prompt.parts[1:], strict=True)]
        return Generation(
            prompt=prompt.text,
            text=prompt.parts[0] + "".join(behind),
            marks=tuple(blank.mark for blank in prompt.blanks),
            texts=tuple(texts),
            fillings=tuple(fillings),
        )


class _GrowingTexts:
    """The texts of a batch while their blanks are being filled."""

    def __init__(
        self, prompts: Sequence[Prompt], tokenizer: TextTokenizer, on_text: OnText
    ) -> None:
        self._prompts = prompts
        self._tokenizer = tokenizer
        self._on_text = on_text
        self._decoders = [StreamDecoder(tokenizer) for _ in prompts]
        for number, prompt in enumerate(prompts):
            on_text(number, prompt.parts[0])

    def add(self, number: int, blank: int, token: int | None) -> None:
        """Take a token of a prompt's blank; None: the blank is filled."""
        if token is not None:
            self._on_text(number, self._decoders[number].add(token))
            return
        rest = self._decoders[number].end()
        self._on_text(number, rest + self._prompts[number].parts[blank + 1])
        self._decoders[number] = StreamDecoder(self._tokenizer)
