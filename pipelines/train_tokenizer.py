"""A SentencePiece tokenizer trained on a sample of a corpus.

    python -m pipelines.train_tokenizer --input DIR --vocab-size 50000 --output tokenizer.model

By default, encoding and decoding give a text back unchanged: nothing is normalised, line breaks and
rare characters are spelt in bytes, and runs of spaces have pieces of their own. The same input and
options give the same bytes.
"""

import argparse
import dataclasses
import io
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from pipelines.corpus.recipe import find_corpus, load_recipe
from pipelines.corpus.sources import Corpus
from pipelines.inputs.files import match_inputs
from pipelines.training_texts import Sample, TrainingTexts
from shards.command import HelpWithDefaults, Parser, print_text
from shards.errors import UserError
from shards.flags import count, local_path, positive
from shards.program import called
from shards.storage.files import atomic_write

PROGRAM = "pipelines.train_tokenizer"

HELD_BACK = 0.02
"""Share of the sampled records that measure the tokenizer instead of training it."""

_LINE_CHARACTERS = 4096
"""SentencePiece drops lines above a limit in bytes, so longer ones are cut for it."""

_HELD_BYTES = 4 << 20

_LEAST_COVERAGE = 0.9

_SMALLEST = 300
"""Room for the 256 bytes, the three control symbols, and a few characters."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """What decides the bytes of a model, apart from the texts."""

    vocab_size: int
    """Pieces; GLM's command tokens come on top."""
    model_type: str = "bpe"
    """bpe or unigram."""
    character_coverage: float = 0.9995
    """Share of the characters of the texts that get pieces; the rest is spelt in bytes."""
    normalization: str = "identity"
    """identity, or nmt_nfkc as GLM's own model has it: full width to ASCII, breaks to spaces."""


def main(argv: Sequence[str]) -> int:
    """Train the model that the command line asks for, print a report, and return the exit code."""
    return print_text(
        PROGRAM, lambda: run(_parser().parse_args(argv)), stopped="nothing was written"
    )


def run(arguments: argparse.Namespace) -> str:
    """Train and write a model and return the closing lines.

    Raises:
        UserError: an option does not fit, the input cannot be read or is too small.
    """
    output: Path = arguments.output
    if output.suffix != ".model":
        raise UserError(
            f"--output {output}: the name of a SentencePiece model has to end in .model."
        )
    if output.exists():
        raise UserError(f"{output} exists already: remove it or choose another --output.")
    options = TrainOptions(
        vocab_size=arguments.vocab_size,
        model_type=arguments.model_type,
        character_coverage=arguments.character_coverage,
        normalization=arguments.normalization,
    )
    module = find_corpus(arguments.corpus, where="--corpus")
    recipe = load_recipe(module)
    files = match_inputs(arguments.input, pattern=recipe.pattern, default_name=recipe.name)
    sample = Sample(
        num_bytes=arguments.sample_bytes,
        seed=arguments.seed,
        held_share=HELD_BACK,
        held_bytes=_HELD_BYTES,
    )
    corpus = Corpus(module, recipe.options())
    corpora = {file.source: corpus for file in files}
    texts = TrainingTexts(files, corpora, sample, program=PROGRAM)
    model = train(texts, options=options)
    with atomic_write(output) as handle:
        handle.write(model)
    inputs = " ".join(f"--input {shlex.quote(spec)}" for spec in arguments.input)
    return (
        f"{output}: {options.vocab_size} pieces from {texts.documents} documents "
        f"({texts.bytes / 1e6:.1f} MB); {_compression(model, texts.held)}\n"
        f"next: {called(f'python -m {module}')} {inputs} "
        f"--tokenizer sentencepiece:{shlex.quote(str(output))}"
    )


def train(texts: Iterable[str], *, options: TrainOptions) -> bytes:
    """Return a SentencePiece model, always the same for the same texts and options.

    Raises:
        UserError: there is too little text for so many pieces, or too varied a text for so few.
    """
    faithful = options.normalization == "identity"
    sink = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=_lines(texts),
            model_writer=sink,
            vocab_size=options.vocab_size,
            model_type=options.model_type,
            character_coverage=options.character_coverage,
            normalization_rule_name=options.normalization,
            remove_extra_whitespaces=not faithful,
            allow_whitespace_only_pieces=faithful,
            byte_fallback=True,
            split_digits=True,
            # A character takes up to four bytes.
            max_sentence_length=4 * _LINE_CHARACTERS,
            # The model records the number, and it decides the last digits of scores.
            num_threads=4,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        # SentencePiece puts a place in its source and a condition before the reason.
        reason = str(error).rsplit("] ", 1)[-1].strip()
        raise UserError(
            f"SentencePiece cannot make {options.vocab_size} pieces of this text ({reason}): give "
            "another --vocab-size, more text, or a lower --character-coverage."
        ) from error
    return sink.getvalue()


def _lines(texts: Iterable[str]) -> Iterator[str]:
    empty = True
    for text in texts:
        for line in text.split("\n"):
            for start in range(0, len(line), _LINE_CHARACTERS):
                empty = False
                yield line[start : start + _LINE_CHARACTERS]
    if empty:
        raise UserError("There is no text to train on: every document of the input is dropped.")


def _compression(model: bytes, held: Sequence[str]) -> str:
    """Return how many bytes a token stands for in the texts held back, as a phrase."""
    processor = SentencePieceProcessor(model_proto=model)
    tokens = sum(len(processor.EncodeAsNumpy(text)) for text in held)
    if not tokens:
        return "too few documents to hold some back and measure it"
    size = sum(len(text.encode()) for text in held)
    return f"{size / tokens:.2f} bytes per token on {len(held)} documents held back"


def _vocab_size(text: str) -> int:
    value = count(text)
    if value < _SMALLEST:
        raise argparse.ArgumentTypeError(f"{text} is below {_SMALLEST}: 256 pieces are bytes")
    return value


def _coverage(text: str) -> float:
    value = float(text)
    if not _LEAST_COVERAGE <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between {_LEAST_COVERAGE} and 1")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=f"python -m {PROGRAM}",
        description="Train a SentencePiece tokenizer on a sample of a corpus.",
        formatter_class=HelpWithDefaults,
    )
    add = parser.add_argument
    add(
        "--input",
        action="append",
        required=True,
        metavar="PATH",
        help="as for the corpus; repeatable",
    )
    add(
        "--corpus",
        metavar="NAME",
        default="wudao",
        help="what the input is: a corpus, or a module that holds one. Default: wudao",
    )
    add("--output", type=local_path, required=True, metavar="PATH.model", help="the model to write")
    add("--vocab-size", type=_vocab_size, required=True, metavar="N", help="pieces, e.g. 50k")
    add("--model-type", choices=("bpe", "unigram"), default="bpe", help="kind of model")
    add(
        "--normalization",
        choices=("identity", "nmt_nfkc"),
        default="identity",
        help="identity: decoding gives the text back; nmt_nfkc, as GLM's own model: full-width "
        "punctuation becomes ASCII, line breaks become spaces",
    )
    add(
        "--character-coverage",
        type=_coverage,
        default=0.9995,
        metavar="SHARE",
        help="share of the characters that get pieces; the rest is spelt in bytes",
    )
    add(
        "--sample-bytes",
        type=positive,
        default="50M",
        metavar="N",
        help="how much of the input to train on",
    )
    add("--seed", type=count, default=0, metavar="N", help="seed of the sample")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
