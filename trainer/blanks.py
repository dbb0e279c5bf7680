"""Blank infilling: windows of text become what a GLM is trained on.

Each sample has one objective, drawn by its own key, as everything about it is:

    0  token spans   15 % of the text in short blanks               `trainer.spans`
    1  sentences     15 % of the text in whole sentences            `trainer.sentences`
    2  generation    the end of the text, or a long run inside it   `trainer.generation`

A text is shortened first, if it is (`trainer.shorten`); `[dBLOCK]` comes last (`trainer.noise`);
`trainer.blocks` draws the rows that result.

One sample in, one row out: none is discarded, split or merged. Prompts, `[CLS]` and eos are in no
blank, and prompts and `[CLS]` carry no loss; only the end of a text, generated, shows the eos of
its documents. A sample of sentences without a whole sentence gets token spans. A text without
anything to predict is a row without loss, an empty one an empty row. What a row becomes depends on
its text and key, never on the batch around it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from shards.batch import Batch
from shards.errors import UserError
from shards.order.permutation import Words
from trainer.blocks import MULTIPLE, Blanks, Rows, assemble
from trainer.chance import Chance, Integers, Purpose, below, happens
from trainer.generation import Generation, generation_spans
from trainer.noise import noise_in_blanks, noise_in_context
from trainer.sentences import sentence_spans, sentences_of
from trainer.shorten import shortened
from trainer.signs import signs_of
from trainer.spans import token_spans
from trainer.text import Flags, Spans, Text, find_runs, is_special, text_of

_ROUNDING = 1e-9
"""A probability below it is a sum of decimal fractions that should be 0."""


class Task(IntEnum):
    """The objective of a sample."""

    SPANS = 0
    SENTENCES = 1
    GENERATION = 2


@dataclass(frozen=True, kw_only=True)
class BlankOptions:
    """How blanks are made; the defaults are the recipe of GLM-10B (THUDM/GLM, ds_block_10B.sh).

    Raises:
        UserError: a value is out of its range.
    """

    bert_prob: float = 0.5
    """Probability of token spans."""
    sentence_prob: float = 0.3
    """Probability of sentence spans; what is left of 1 is text generation."""
    span_ratio: float = 0.15
    """Share of the text that token spans and sentences cover."""
    single_span_prob: float = 0.0
    """Probability that a sample of token spans has one blank only."""
    infill_prob: float = 0.5
    """Probability that a text of one document has a run inside it to generate, closed by eop, not
    its end. THUDM/GLM's gpt_infill_prob is the opposite: 1 minus this."""
    gpt_min_ratio: float = 0.25
    """Least share of a text that is generated."""
    short_seq_prob: float = 0.02
    """Probability that a part of the text is taken in place of the whole."""
    block_mask_prob: float = 0.1
    """Probability that a token within a token span is shown as [dBLOCK]."""
    context_mask_ratio: float = 0.0
    """Share of the text, near token spans, that is shown as [dBLOCK]."""
    random_position: bool = False
    """Positions begin at a random number, as long as they stay below the model's."""
    task_mask: bool = True
    """Sentences are marked by [sMASK], generation by [gMASK]; else all blanks by [MASK]."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value <= 1:
                raise UserError(f"{name} is {value}: it must lie between 0 and 1.")
        if self.bert_prob + self.sentence_prob > 1 + _ROUNDING:
            raise UserError(
                f"bert_prob {self.bert_prob} and sentence_prob {self.sentence_prob} add up to more "
                "than 1; what they leave of 1 is the probability of text generation."
            )

    @property
    def roles(self) -> frozenset[str]:
        """The special tokens that these blanks need, by role."""
        spans = self.bert_prob + self.sentence_prob > 0
        hides = self.block_mask_prob + self.context_mask_ratio > 0
        needed = {
            "mask": spans or not self.task_mask,
            "smask": self.task_mask and self.sentence_prob > 0,
            "gmask": self.task_mask and self.generates,
            "dblock": spans and hides,
        }
        return frozenset({"sop", "eop", *(role for role, needs in needed.items() if needs)})

    @property
    def generates(self) -> bool:
        """Whether some samples are text generation."""
        return self.bert_prob + self.sentence_prob < 1 - _ROUNDING


@dataclass(frozen=True, kw_only=True, eq=False)
class GlmBatch:
    """Rows for a GLM. n, a multiple of 64, is the width; b the number of rows."""

    tokens: Integers
    """[b, n]: Part A, Part B, padding."""
    targets: Integers
    """[b, n]: of Part B; elsewhere padding."""
    loss_mask: Flags
    """[b, n]: the targets that count."""
    position_ids: Integers
    """[b, 2, n]: positions; positions in a block, 0 in Part A."""
    sep: Integers
    """[b]: tokens of Part A, which all tokens attend to."""
    lengths: Integers
    """[b]: tokens without padding."""
    task: NDArray[np.int8]
    """[b]: the `Task`; token spans where sentences were drawn and there was none."""
    source: Integers
    """[b]: the stream that the text is of."""
    pieces: Integers | None
    """[b, n]: the document of each token in its row, from 0; -1 in the padding. On request."""


class BlankMaker:
    """Makes blanks in batches of GLM windows.

    Args:
        special: the tokenizer's special tokens, `manifest.tokenizer.special`.
        options: how.
        max_positions: positions P of the model. No window may have more tokens; then positions are
            below P, and block positions at most P.
        sentence_ends: bool[vocabulary], `Vocabulary.sentence_end`.
        isolate: tell the document of each token, for attention that does not cross documents.

    Raises:
        UserError: the tokenizer lacks a special token that the options need.
    """

    def __init__(
        self,
        special: Mapping[str, int],
        options: BlankOptions,
        *,
        max_positions: int,
        sentence_ends: NDArray[np.bool_],
        isolate: bool = False,
    ) -> None:
        self.options = options
        self.max_positions = max_positions
        self._isolate = isolate
        self._signs = signs_of(special, needs=options.roles, sentence_ends=sentence_ends)
        signs = self._signs
        masks = [signs.mask, signs.smask, signs.gmask] if options.task_mask else [signs.mask] * 3
        self._masks = np.array(masks)

    @property
    def max_length(self) -> int:
        """The most tokens of a row: n + 2 max(1, 15 % of n), as multiple of 64; n + 2 generated.

        A blank adds its `[MASK]` and `sop`; for each but the last the budget is a token smaller.
        """
        num_blanks = max(1, int(self.options.span_ratio * self.max_positions))
        return -(-(self.max_positions + 2 * num_blanks) // MULTIPLE) * MULTIPLE

    def __call__(self, batch: Batch, keys: Words, *, sources: Integers) -> GlmBatch:
        """Return the rows of GLM windows.

        Args:
            batch: the windows.
            keys: uint64[b], by sample: what is random about it.
            sources: int64[b], handed on.

        Raises:
            ValueError: a window has more tokens than the model has positions.
        """
        if batch.lengths.max(initial=0) > self.max_positions:
            raise ValueError(
                f"a window has {batch.lengths.max()} tokens, the model {self.max_positions} "
                f"positions: cut them with glm_windows({self.max_positions})"
            )
        chance = Chance(keys)
        text = shortened(
            text_of(batch, numbered=self._isolate),
            self._signs,
            probability=self.options.short_seq_prob,
            max_positions=self.max_positions,
            chance=chance,
        )
        tasks, blanks, inputs = self._blanks(text, chance)
        rows = assemble(text, blanks, self._signs, inputs=inputs, chance=chance)
        if self.options.random_position:
            self._shift(rows, chance)
        return GlmBatch(**rows._asdict(), task=tasks.astype(np.int8), source=sources)

    def _blanks(self, text: Text, chance: Chance) -> tuple[Integers, Blanks, Integers]:
        """Return the tasks by row, the blanks, and the tokens that the model sees."""
        runs = find_runs(text, self._signs)
        tasks = self._draw_tasks(chance)
        sentences = sentences_of(
            text, runs.of(tasks == Task.SENTENCES), self._signs, longest=self.max_positions - 1
        )
        has_none = np.bincount(sentences.rows, minlength=len(tasks)) == 0
        tasks[(tasks == Task.SENTENCES) & has_none] = Task.SPANS
        budgets = self._budgets(text, runs.of(tasks != Task.GENERATION))
        for_spans = runs.of(tasks == Task.SPANS)
        spans = self._token_spans(for_spans, budgets, chance)
        generated = self._generated(text, runs.of(tasks == Task.GENERATION), chance)
        whole = sentence_spans(sentences, budgets, chance)
        joined, is_end = _joined(spans, whole, generated=generated)
        inputs = self._inputs(text, for_spans, spans, chance)
        return tasks, Blanks(joined, is_end, self._masks[tasks]), inputs

    def _draw_tasks(self, chance: Chance) -> Integers:
        words = chance.words(Purpose.TASK)
        either = self.options.bert_prob + self.options.sentence_prob
        is_either = happens(words, either if self.options.generates else 1.0)
        tasks = np.where(is_either, int(Task.SENTENCES), int(Task.GENERATION))
        tasks[happens(words, self.options.bert_prob)] = Task.SPANS
        return tasks

    def _budgets(self, text: Text, runs: Spans) -> Integers:
        """Return by row how many tokens spans cover: a share of the text but for its prompts."""
        height, width = text.tokens.shape
        if not len(runs.rows):
            return np.ones(height, np.int64)
        special = is_special(text, self._signs) & (np.arange(width) < text.lengths[:, None])
        num_special = np.bincount(np.flatnonzero(special) // width, minlength=height)
        lengths = num_special + np.bincount(runs.rows, runs.sizes, height)
        budgets: Integers = np.maximum((self.options.span_ratio * lengths).astype(np.int64), 1)
        return budgets

    def _token_spans(self, runs: Spans, budgets: Integers, chance: Chance) -> Spans:
        words = chance.words(Purpose.IS_SINGLE)
        budgets = np.where(happens(words, self.options.single_span_prob), 1, budgets)
        return token_spans(runs, budgets, chance=chance, longest=self.max_positions - 1)

    def _generated(self, text: Text, runs: Spans, chance: Chance) -> Generation:
        return generation_spans(
            text,
            runs,
            min_ratio=self.options.gpt_min_ratio,
            infill_prob=self.options.infill_prob,
            longest=self.max_positions - 1,
            chance=chance,
        )

    def _inputs(self, text: Text, runs: Spans, blanks: Spans, chance: Chance) -> Integers:
        """Return the tokens with noise in and near these blanks."""
        options, tokens = self.options, text.tokens
        if options.block_mask_prob and len(blanks.rows):
            tokens = tokens.copy()
            tokens[noise_in_blanks(blanks, options.block_mask_prob, chance)] = self._signs.dblock
        if options.context_mask_ratio and len(blanks.rows):
            tokens = tokens.copy()
            numbers = (options.context_mask_ratio * text.lengths).astype(np.int64)
            tokens[noise_in_context(runs, blanks, numbers, chance)] = self._signs.dblock
        return tokens

    def _shift(self, rows: Rows, chance: Chance) -> None:
        """Let the positions of each row begin at a random number."""
        spare = self.max_positions - np.maximum(rows.sep, 1) + 1
        words = chance.words(Purpose.SHIFT)
        inside = np.arange(rows.tokens.shape[1]) < rows.lengths[:, None]
        rows.position_ids[:, 0] += below(words, spare)[:, None] * inside


def _joined(*parts: Spans, generated: Generation) -> tuple[Spans, Flags]:
    """Return all blanks by row, then start, and which are the end of a text."""
    spans = [part for part in (*parts, generated.spans) if len(part.rows)]
    is_end = np.zeros(sum(len(part.rows) for part in spans), np.bool_)
    is_end[len(is_end) - len(generated.is_end) :] = generated.is_end
    if len(spans) <= 1:
        return (spans or parts)[0], is_end
    rows, starts, sizes = (np.concatenate(fields) for fields in zip(*spans, strict=True))
    order = np.argsort(rows, kind="stable")  # a row is of one part, which is in order
    return Spans(rows[order], starts[order], sizes[order]), is_end[order]
