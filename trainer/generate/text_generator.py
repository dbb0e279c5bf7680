"""Generates text with a trained model: fills the blanks of prompts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.generate.decoder import CachedDecoder
from trainer.generate.decoding import Decoding
from trainer.generate.prompt import Prompt, make_prompt
from trainer.generate.search import Completion, fill
from trainer.model.model import GLM
from trainer.tokenizer import PromptFormat, TextTokenizer


@dataclass(frozen=True, kw_only=True)
class GeneratedText:
    """A prompt with its blanks filled."""

    prompt: str
    """The text of the prompt."""
    text: str
    """The whole text with its blanks filled."""
    marks: tuple[str, ...]
    """The mark of each blank: [MASK], [sMASK] or [gMASK]; "" for a causal model."""
    texts: tuple[str, ...]
    """The generated text of each blank."""
    completions: tuple[Completion, ...]

    @classmethod
    def of(
        cls, prompt: Prompt, completions: Sequence[Completion], tokenizer: TextTokenizer
    ) -> "GeneratedText":
        """Return a prompt with its blanks filled."""
        texts = tuple(text_of(filling.tokens, tokenizer) for filling in completions)
        behind = [text + part for text, part in zip(texts, prompt.parts[1:], strict=True)]
        return cls(
            prompt=prompt.text,
            text=prompt.parts[0] + "".join(behind),
            marks=tuple(blank.mark for blank in prompt.blanks),
            texts=texts,
            completions=tuple(completions),
        )

    def json(self) -> dict[str, Any]:
        """Return the object for a JSON line."""
        blanks = []
        for mark, text, filling in zip(self.marks, self.texts, self.completions, strict=True):
            blank = {"mark": mark, "text": text, "finish": filling.finish}
            score = {} if filling.score is None else {"score": filling.score}
            blanks.append({**blank, **score, "tokens": filling.tokens})
        return {"prompt": self.prompt, "text": self.text, "blanks": blanks}


def text_of(tokens: Sequence[int], tokenizer: TextTokenizer) -> str:
    """Return the text of tokens; bytes that are not a character appear as U+FFFD.

    A model may have more embedding rows than its tokenizer has tokens, and may choose the extra
    rows early in training; these appear as ⟨number⟩.
    """
    content = b"".join(
        tokenizer.decode_bytes([token])
        if token < tokenizer.vocabulary_size
        else f"⟨{token}⟩".encode()
        for token in tokens
    )
    return content.decode(errors="replace")


@dataclass(frozen=True, kw_only=True, eq=False)
class TextGenerator:
    """Generates text with a model."""

    model: GLM
    """The model in evaluation mode, on any device."""
    tokenizer: TextTokenizer
    decoding: Decoding

    def generate(self, prompts: Sequence[Prompt], *, batch_size: int) -> Iterator[GeneratedText]:
        """Yield the prompts with their blanks filled, batch by batch.

        Args:
            prompts: one or more prompts.
            batch_size: the number of prompts filled at once; it does not affect draws.
        """
        for begin in range(0, len(prompts), batch_size):
            batch = prompts[begin : begin + batch_size]
            filled = fill(self._decoder, batch, self.decoding, first=begin)
            for prompt, completions in zip(batch, filled, strict=True):
                yield GeneratedText.of(prompt, completions, self.tokenizer)

    @property
    def _decoder(self) -> CachedDecoder:
        return CachedDecoder(
            self.model, self.model.config, self.model.word_embeddings.weight.device
        )


def generate_texts(
    model: GLM,
    tokenizer: TextTokenizer,
    prompts: Sequence[str],
    *,
    decoding: Decoding | None = None,
    prompt_format: PromptFormat | None = None,
    batch_size: int = 8,
) -> list[GeneratedText]:
    """Return prompts with their blanks filled.

    Args:
        model: the model in evaluation mode, on any device.
        tokenizer: the tokenizer of the model.
        prompts: texts with [MASK], [sMASK] or [gMASK] for blanks; a text that has no blanks
            continues at its end. A causal model continues every text at its end.
        decoding: the options for choosing tokens. Default: the most probable token, up to 128 per
            blank.
        prompt_format: the properties of the model, `LoadedModel.source.prompt_format`. Default: a
            causal model if it has no block positions, else a GLM with task masks.
        batch_size: the number of prompts filled at once; it does not affect draws.

    Raises:
        UserError: the tokenizer lacks a token, or the model has too few positions for a prompt.
    """
    if prompt_format is None:
        shape = model.config
        prompt_format = PromptFormat(
            causal=not shape.block_positions, positions=shape.position_rows
        )
    generator = TextGenerator(model=model, tokenizer=tokenizer, decoding=decoding or Decoding())
    ready = [make_prompt(text, tokenizer, prompt_format) for text in prompts]
    return list(generator.generate(ready, batch_size=batch_size))
