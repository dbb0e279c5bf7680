"""Perplexity of whole texts, read through windows that overlap.

    glm     [CLS] prompt [gMASK] | sop rest      a window of length - 1 tokens; the next begins
                                                 `stride` further, and scores what is new in it
    causal  eos tokens                           `length` tokens; as lm-evaluation-harness

A glm's windows are those of THUDM/GLM (commit 4f61ed7, tasks/language_model/dataset.py): the first
one's prompt is its first token, which nothing scores; a later one's is all that was scored before.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shards.errors import UserError
from trainer.tasks.exam import Answers
from trainer.tasks.items import read_some_items, read_text
from trainer.tasks.phrasing import Ids, Phrasing, scored_last
from trainer.tasks.rows import Row, causal_row

GLM_STRIDE = 32
"""The reference's --overlapping-eval."""
_LARGEST = 700.0
"""Beyond it an exponential is not finite."""


def exponential(value: float) -> float:
    """Return e to the power of a value; inf where that is too large."""
    return math.inf if value > _LARGEST else math.exp(value)


@dataclass(frozen=True, kw_only=True)
class Document:
    """A text, as its file has it and as it is read."""

    original: str
    """Its words and bytes are counted."""
    text: str
    """Its tokens are scored."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """A run of a document's tokens, and how many at its end are scored."""

    document: int
    first: int
    end: int
    scored: int


@dataclass(frozen=True, kw_only=True, eq=False)
class PerplexityExam:
    """All windows of a file's documents."""

    phrasing: Phrasing
    documents: tuple[Ids, ...]
    windows: tuple[Window, ...]
    num_words: int
    """Pieces between white space, as lm-evaluation-harness counts them."""
    num_spaced: int
    """Pieces between single spaces, as the reference counts them."""
    num_bytes: int

    @classmethod
    def of(
        cls, documents: Sequence[Document], phrasing: Phrasing, *, stride: int | None
    ) -> "PerplexityExam":
        """Return the exam of documents.

        Args:
            documents: at least one.
            phrasing: of the model.
            stride: tokens from window to window. None: the reference's 32 for a glm, for a causal
                model the window's length.

        Raises:
            UserError: the windows are too short for the stride, or nothing can be scored.
        """
        encoded = phrasing.tokenizer.encode_all([document.text for document in documents])
        ids = tuple(np.array(tokens, np.int32) for tokens in encoded)
        width = phrasing.length - (0 if phrasing.is_causal else 1)
        if width < 1:
            raise UserError("--length 1 leaves a glm no token beside the blank: give 2 or more.")
        step = stride or (width if phrasing.is_causal else min(width, GLM_STRIDE))
        if step > width:
            raise UserError(
                f"--stride {step} would leave out text between windows of {width:,} tokens: give "
                f"1 to {width:,}."
            )
        cut = causal_windows if phrasing.is_causal else glm_windows
        windows = tuple(w for i, tokens in enumerate(ids) for w in cut(i, len(tokens), width, step))
        if not any(window.scored for window in windows):
            raise UserError("the text has no token that another one comes before: give more text.")
        originals = [document.original for document in documents]
        return cls(
            phrasing=phrasing,
            documents=ids,
            windows=windows,
            num_words=sum(len(re.split(r"\s+", text)) for text in originals),
            num_spaced=sum(len(text.strip().split(" ")) for text in originals),
            num_bytes=sum(len(text.encode()) for text in originals),
        )

    @property
    def pad(self) -> int:
        """The id that fills rows up."""
        return self.phrasing.pad

    @property
    def sizes(self) -> list[int]:
        """Tokens of each row, nearly."""
        return [window.end - window.first for window in self.windows]

    @property
    def counts(self) -> dict[str, int]:
        """Documents, their tokens, and their words and bytes as the file has them."""
        return {
            "documents": len(self.documents),
            "tokens": sum(map(len, self.documents)),
            "words": self.num_words,
            "bytes": self.num_bytes,
        }

    def row(self, number: int) -> Row:
        """Return the row of a window."""
        window = self.windows[number]
        tokens = self.documents[window.document]
        if self.phrasing.is_causal:
            before = tokens[window.first - 1 : window.first].tolist() or [self.pad]
            seen = tokens[window.first : window.end].tolist()
            return scored_last(causal_row(before, seen), window.scored)
        size = window.end - window.first
        is_later = window.first > 0 and not self.phrasing.unidirectional
        prompt = size - window.scored if is_later else 1
        ids = tokens[window.first : window.end].tolist()
        return scored_last(
            self.phrasing.blank(ids[:prompt], ids[prompt:], ends=False),
            min(window.scored, size - prompt),
        )

    def figures(self, answers: Answers) -> dict[str, float]:
        """Return losses in nats and perplexities, per token, word and byte.

        A glm has the reference's as well: divided by all tokens but one, whatever was scored.
        """
        loss = -float(answers.log_probability.sum())
        scored = int(answers.num_targets.sum())
        figures = {
            "loss": loss / scored,
            "perplexity": exponential(loss / scored),
            "word_perplexity": exponential(loss / self.num_words),
            "byte_perplexity": exponential(loss / self.num_bytes),
            "bits_per_byte": loss / self.num_bytes / math.log(2),
        }
        if self.phrasing.is_causal:
            return figures
        between = sum(map(len, self.documents)) - 1
        mean = loss / between
        adjusted = mean * between / max(1, self.num_spaced - 1)
        return figures | {
            "reference_loss": mean,
            "reference_perplexity": exponential(min(20.0, mean)),
            "reference_adjusted_perplexity": exponential(adjusted),
        }


def glm_windows(document: int, size: int, width: int, step: int) -> Iterable[Window]:
    """Yield the windows of a document as the reference cuts them; the last may be short."""
    first = reached = 0
    while reached < size:
        end = min(first + width, size)
        # Nothing comes before the first token.
        yield Window(document=document, first=first, end=end, scored=end - max(reached, 1))
        first, reached = first + step, end


def causal_windows(document: int, size: int, width: int, step: int) -> Iterable[Window]:
    """Yield the windows of a document as lm-evaluation-harness does; the last begins earlier."""
    reached = 0
    while reached < size:
        end = min(size, reached + step) if reached else min(size, width)
        yield Window(document=document, first=max(0, end - width), end=end, scored=end - reached)
        reached = end


def read_wikitext(path: Path) -> list[Document]:
    """Return WikiText's documents: all of a text file, or the pages of JSON lines.

    Raises:
        UserError: there is nothing in it, or an item has no "page".
    """
    texts = (
        [item.words("page") for item in read_some_items(path)]
        if path.suffix in (".jsonl", ".json")
        else [read_text(path)]
    )
    if not texts[0].strip():
        raise UserError(f"{path} is empty. Expected WikiText's tokens.")
    return [Document(original=text, text=detokenized(text)) for text in texts]


def read_documents(path: Path) -> list[Document]:
    """Return the documents of a file: its lines, or the "text" of JSON lines.

    Raises:
        UserError: there is nothing in it, or an item has no "text".
    """
    texts = (
        [item.words("text") for item in read_some_items(path)]
        if path.suffix in (".jsonl", ".json")
        else [line.rstrip("\r") for line in read_text(path).split("\n") if line.strip()]
    )
    if not texts:
        raise UserError(f"{path} is empty. Expected a document a line.")
    return [Document(original=text, text=text) for text in texts]


_WORDS = (
    ("s '", "s'"),
    *((" @-@ ", "-"), (" @,@ ", ","), (" @.@ ", ".")),
    *((f" {mark} ", f"{mark} ") for mark in ":;.!?,"),
)
_QUOTED = (
    (r"\(\s*([^\)]*?)\s*\)", r"(\1)"),
    (r"\[\s*([^\]]*?)\s*\]", r"[\1]"),
    (r"{\s*([^}]*?)\s*}", r"{\1}"),
    (r"\"\s*([^\"]*?)\s*\"", r'"\1"'),
    (r"'\s*([^']*?)\s*'", r"'\1'"),
)
_REST = (
    *(("= = = =", "===="), ("= = =", "==="), ("= =", "==")),
    *((" ° ", "°"), (" \n", "\n"), ("\n ", "\n"), (" N ", " 1 "), (" 's", "'s")),
)


def detokenized(text: str) -> str:
    """Return WikiText as it was before it was cut into tokens.

    The rules and their order are Megatron-LM's, which the reference and lm-evaluation-harness use
    too, without one for numbers between slashes, whose pattern no text has.
    """
    for before, after in _WORDS:
        text = text.replace(before, after)
    for pattern, replacement in _QUOTED:
        text = re.sub(pattern, replacement, text)
    for before, after in _REST:
        text = text.replace(before, after)
    return text
