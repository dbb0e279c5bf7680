"""Trains a SentencePiece tokenizer on a sample of a corpus.

    python -m pipelines.train_tokenizer --input DIR --vocab-size 50000 --output tokenizer.model

By default, decoding an encoded text returns the text unchanged: nothing is normalised, line breaks
and rare characters are encoded as bytes, and runs of spaces have their own pieces. The same input
and options give the same bytes.
"""

import argparse
import io
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from pipelines.training_texts import HoldOut, TrainingTextOptions, TrainingTexts, check_new
from shards.commands.command import Command, log_plainly
from shards.commands.flags import count, local_path, option, positive
from shards.commands.output import print_line
from shards.commands.table import called
from shards.console import run_module
from shards.errors import UserError
from shards.storage.files import atomic_write

HOLD_OUT = HoldOut(share=0.02, max_bytes=4 << 20)
"""The share of sampled records that measure the tokenizer instead of training it."""

_LINE_CHARACTERS = 4096
"""The length at which lines are cut, because SentencePiece drops lines above a limit in bytes."""

_MIN_COVERAGE = 0.9

_SMALLEST = 300
"""The minimum size of a vocabulary: 256 bytes, three control symbols, and a few characters."""


def _vocab_size(text: str) -> int:
    value = count(text)
    if value < _SMALLEST:
        raise argparse.ArgumentTypeError(f"{text} is below {_SMALLEST}: 256 pieces are bytes")
    return value


def _coverage(text: str) -> float:
    value = float(text)
    if not _MIN_COVERAGE <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between {_MIN_COVERAGE} and 1")
    return value


@dataclass(frozen=True, kw_only=True)
class TokenizerOptions:
    """The options that determine the bytes of a model."""

    vocab_size: int = option(MISSING, required=True, type=_vocab_size, metavar="N")
    """Vocabulary size in pieces, for example 50k. GLM's command tokens are added to it."""
    model_type: str = option("bpe", choices=("bpe", "unigram"))
    """Type of the model."""
    normalization: str = option("identity", choices=("identity", "nmt_nfkc"))
    """identity: decoding returns the original text. nmt_nfkc, which GLM's model uses: full-width
    punctuation becomes ASCII, and line breaks become spaces."""
    character_coverage: float = option(0.9995, type=_coverage, metavar="SHARE")
    """Share of the characters that the vocabulary covers; the others are spelt in bytes."""


@dataclass(frozen=True, kw_only=True)
class TrainTokenizer(TrainingTextOptions, TokenizerOptions, Command):
    """Train a SentencePiece tokenizer on a sample of a corpus."""

    STOPPED = "nothing was written"
    LEADING_FLAG = "--input"

    input: tuple[str, ...] = option(
        MISSING, required=True, action="extend", nargs="+", metavar="PATH"
    )
    """Folders, files or globs to read, as for the corpus."""
    corpus: str = option("wudao", metavar="NAME")
    """Corpus of the input, or a module that defines one."""
    output: Path = option(MISSING, required=True, type=local_path, metavar="PATH.model")
    """Model file to write."""
    sample_bytes: int = option(50_000_000, type=positive, metavar="N")
    """Bytes of the input to train on."""

    def run(self) -> None:
        """Train a model, write it, and print the closing lines.

        Raises:
            UserError: An option is not valid, or the input cannot be read or is too small.
        """
        log_plainly()
        check_new(self.output, ".model", "SentencePiece")
        texts = self._texts()
        model = train(texts, options=self)
        with atomic_write(self.output) as handle:
            handle.write(model)
        print_line(
            f"{self.output}: {self.vocab_size} pieces from {texts.documents} documents "
            f"({texts.bytes / 1e6:.1f} MB); {_compression(model, texts.held_out)}"
        )
        if skipped := texts.skipped():
            print_line(skipped)
        words = ["--input", *self.input]
        words += ["--text-field", self.text_field] if self.text_field else []
        words += ["--format", self.format] if self.format else []
        words += ["--tokenizer", f"sentencepiece:{self.output}"]
        print_line(f"next: python -m {texts.module} {shlex.join(words)}")

    def _texts(self) -> TrainingTexts:
        """Return the texts to train on.

        Raises:
            UserError: No file was found, or the files cannot be read.
        """
        try:
            return TrainingTexts(
                self.input, self, hold_out=HOLD_OUT, program="pipelines.train_tokenizer"
            )
        except UserError as error:
            if self.corpus != TrainTokenizer.corpus:
                raise
            raise UserError(
                f"{error} The input is read as the corpus {self.corpus} unless --corpus names "
                f"another one, as in --corpus text; {called('look')} PATH says which."
            ) from error


def train(texts: Iterable[str], *, options: TokenizerOptions) -> bytes:
    """Return a SentencePiece model; the same texts and options give the same bytes.

    Raises:
        UserError: The text is too short or too varied for the number of pieces.
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
            # The model stores the number of threads, which also affects the last digits of scores.
            num_threads=4,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        # SentencePiece's messages have a source location and a condition before the reason.
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


def _compression(model: bytes, held_out: Sequence[str]) -> str:
    """Return a phrase with the bytes per token of the held-out texts."""
    processor = SentencePieceProcessor(model_proto=model)
    tokens = sum(len(processor.EncodeAsNumpy(text)) for text in held_out)
    if not tokens:
        return "too few documents to hold some back and measure it"
    size = sum(len(text.encode()) for text in held_out)
    return f"{size / tokens:.2f} bytes per token on {len(held_out)} documents held back"


if __name__ == "__main__":
    sys.exit(run_module("pipelines.train_tokenizer"))
