"""A SentencePiece tokenizer trained on a sample of a corpus.

    python -m pipelines.train_tokenizer --input DIR --vocab-size 50000 --output tokenizer.model

By default, encoding and decoding give a text back unchanged: nothing is normalised, line breaks and
rare characters are spelt in bytes, and runs of spaces have pieces of their own. The same input and
options give the same bytes.
"""

import argparse
import dataclasses
import io
import itertools
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from pipelines.corpus.document import Rejected
from pipelines.corpus.recipe import CORPORA, Recipe, load_recipe
from pipelines.filters.clean import repair
from pipelines.inputs.files import InputFile, match_inputs
from pipelines.readers.reading import open_reader, splits
from pipelines.readers.record import Record
from pipelines.segments.identity import hash_bound, holdout_hashes, sample_hashes
from shards.command import Parser, print_text
from shards.errors import UserError
from shards.flags import count, local_path, positive
from shards.shown import tell
from shards.storage.files import atomic_write

PROGRAM = "pipelines.train_tokenizer"

HELD_BACK = 0.02
"""Share of the sampled records that measure the tokenizer instead of training it."""

_LINE_CHARACTERS = 4096
"""SentencePiece drops lines above a limit in bytes, so longer ones are cut for it."""

_HELD_BYTES = 4 << 20

_BATCH = 1000

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
    recipe = load_recipe(f"pipelines.{arguments.corpus}")
    files = match_inputs(arguments.input, pattern=recipe.pattern, default_name=recipe.name)
    sample = TrainingTexts(files, recipe, num_bytes=arguments.sample_bytes, seed=arguments.seed)
    model = train(sample, options=options)
    with atomic_write(output) as handle:
        handle.write(model)
    inputs = " ".join(f"--input {shlex.quote(spec)}" for spec in arguments.input)
    return (
        f"{output}: {options.vocab_size} pieces from {sample.documents} documents "
        f"({sample.bytes / 1e6:.1f} MB); {_compression(model, sample.held)}\n"
        f"next: python -m pipelines.{arguments.corpus} {inputs} "
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


class TrainingTexts:
    """The texts of about `num_bytes` of a corpus's records, chosen by their sample hash.

    Iterating yields the texts to train on and keeps some others back in `held`.
    """

    def __init__(
        self, files: Sequence[InputFile], recipe: Recipe, *, num_bytes: int, seed: int
    ) -> None:
        self._files = files
        self._recipe = recipe
        self._seed = seed
        self._limit = hash_bound(min(1.0, num_bytes / sum(file.bytes for file in files)))
        self.documents = 0
        """Documents yielded so far."""
        self.bytes = 0
        """Their bytes in UTF-8."""
        self.held: list[str] = []
        """Texts kept back, a few MB at most."""

    def __iter__(self) -> Iterator[str]:
        """Yield the repaired text of each document that the corpus would keep."""
        held_bytes = 0
        for number, file in enumerate(self._files, start=1):
            tell(f"{PROGRAM}: reading {file.path} ({number} of {len(self._files)})")
            for text, is_held in self._texts(file):
                size = len(text.encode())
                if is_held and held_bytes < _HELD_BYTES:
                    self.held.append(text)
                    held_bytes += size
                    continue
                self.documents += 1
                self.bytes += size
                yield text

    def _texts(self, file: InputFile) -> Iterator[tuple[str, bool]]:
        """Yield the repaired texts of the sample, and whether to hold each back."""
        options = self._recipe.options()
        for record, is_held in self._chosen(file):
            try:
                documents = self._recipe.documents(record.value, options)
            except Rejected:
                continue
            for document in documents:
                if document.reason is None:
                    yield repair(document.prompt + document.text), is_held

    def _chosen(self, file: InputFile) -> Iterator[tuple[Record, bool]]:
        """Yield the records of the sample, and whether to hold each back."""
        reading = self._recipe.reading(self._recipe.options())
        readers = (
            open_reader(split, reading) for split in splits(file, reading, split_bytes=file.bytes)
        )
        records = (item for reader in readers for item in reader if isinstance(item, Record))
        while batch := list(itertools.islice(records, _BATCH)):
            place = file.source, file.relative, np.array([record.offset for record in batch])
            samples = sample_hashes(*place, seed=self._seed).tolist()
            holdouts = holdout_hashes(*place, seed=self._seed).tolist()
            for record, sample, holdout in zip(batch, samples, holdouts, strict=True):
                if sample < self._limit:
                    yield record, holdout < hash_bound(HELD_BACK)


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
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--input",
        action="append",
        required=True,
        metavar="PATH",
        help="as for the corpus; repeatable",
    )
    add("--corpus", choices=CORPORA, default="wudao", help="what the input is")
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
