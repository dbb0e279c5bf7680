"""Text from a trained model: blanks of prompts are filled, or texts go on."""

import sys
from collections.abc import Iterator, Sequence

from shards.errors import UserError
from shards.shown import PartPrinter, json_text, print_line, print_lines, tell
from trainer.decode.decoding import Decoding
from trainer.decode.prompt import Prompt, Reading
from trainer.decode.reader import Reader
from trainer.decode.writer import Generation, Writer
from trainer.generate.asking import Asked, Asking
from trainer.model.model import GLM
from trainer.tokenizer import TextTokenizer
from trainer.trained import Trained, open_trained


def generate_texts(
    model: GLM,
    tokenizer: TextTokenizer,
    prompts: Sequence[str],
    *,
    decoding: Decoding | None = None,
    reading: Reading | None = None,
    batch_size: int = 8,
) -> list[Generation]:
    """Return prompts with their blanks filled.

    Args:
        model: in evaluation mode, on any device.
        tokenizer: the model's.
        prompts: texts with [MASK], [sMASK] or [gMASK] for blanks; without any they go on at their
            end. A causal model goes on at the end of every text.
        decoding: how tokens are chosen. Default: the most probable one, up to 128 a blank.
        reading: how the model was trained to read, as `Trained` says. Default: from left to right
            if it has no block positions, else as a GLM with task masks.
        batch_size: how many prompts are filled at once; it does not change what is drawn.

    Raises:
        UserError: the tokenizer lacks a token, or a prompt has no place in the model.
    """
    if reading is None:
        shape = model.config
        reading = Reading(causal=not shape.block_positions, positions=shape.position_rows)
    writer = Writer(_reader_of(model), tokenizer, decoding or Decoding(), reading)
    ready = [writer.prompt(text) for text in prompts]
    return list(_in_batches(writer, ready, batch_size))


def _reader_of(model: GLM) -> Reader:
    return Reader(model, model.config, model.word_embeddings.weight.device)


def _in_batches(writer: Writer, prompts: Sequence[Prompt], size: int) -> Iterator[Generation]:
    for first in range(0, len(prompts), size):
        yield from writer.write(prompts[first : first + size], first=first)


def write_texts(asked: Asked) -> None:
    """Print what a model writes.

    Raises:
        UserError: there is no such model, or a prompt has no place in it.
    """
    trained = open_trained(asked.path, asked.opening)
    reader = _reader_of(trained.model)
    writer = Writer(reader, trained.tokenizer, asked.decoding, trained.reading)
    if asked.texts:
        texts = [text for text in asked.texts for _ in range(asked.asking.samples)]
        _answer(writer, texts, asked.asking)
    else:
        _converse(writer, trained, asked.asking)


def _answer(writer: Writer, texts: Sequence[str], asking: Asking) -> None:
    """Print what a model makes of prompts: as it comes if there is one, else as each is whole."""
    prompts = [writer.prompt(text) for text in texts]
    if len(prompts) == 1:
        _answer_one(writer, prompts[0], asking, number=0)
        return
    for generation in _in_batches(writer, prompts, asking.batch_size):
        _print(generation, asking)


def _converse(writer: Writer, trained: Trained, asking: Asking) -> None:
    """Answer the lines of the standard input, one by one."""
    is_person = sys.stdin.isatty()
    step = "" if trained.step is None else f", step {trained.step:,}"
    ending = "; Ctrl-D ends" if is_person else " of the standard input"
    tell(f"{trained.origin}{step}: waiting for prompts, one a line{ending}.")
    number = 0
    for line in _lines("> " if is_person else ""):
        try:
            prompt = writer.prompt(line)
        except UserError as error:
            if not is_person:
                raise
            tell(str(error))
            continue
        for _ in range(asking.samples):
            _answer_one(writer, prompt, asking, number=number)
            number += 1


def _lines(sign: str) -> Iterator[str]:
    """Return the lines of the standard input that have text, as they come."""
    while True:
        if sign:
            tell(sign, end="")
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.rstrip("\r\n")


def _answer_one(writer: Writer, prompt: Prompt, asking: Asking, *, number: int) -> None:
    """Print what a model makes of a prompt, as it comes."""
    if asking.json:
        _print(writer.write([prompt], first=number)[0], asking)
    else:
        printer = PartPrinter()
        try:
            writer.write([prompt], first=number, on_text=lambda _, text: printer.add(text))
        finally:
            printer.add("\n")


def _print(generation: Generation, asking: Asking) -> None:
    if asking.json:
        print_line(json_text(generation.json(), stream=sys.stdout), flush=True)
    else:
        print_lines([*generation.text.split("\n"), ""])
        sys.stdout.flush()
