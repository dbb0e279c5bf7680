"""Turns windows of text into the rows that a GLM is trained on, by blank infilling.

Each sample has one objective, which is drawn from the sample's key like all its random choices:

    0  token spans   15 % of the text in short blanks               `trainer.blanks.spans`
    1  sentences     15 % of the text in whole sentences            `trainer.blanks.sentences`
    2  generation    the end of the text, or a long run inside it   `trainer.blanks.spans`

Some texts are shortened first (`trainer.blanks.sentences`); `[dBLOCK]` comes last
(`trainer.blanks.spans`); `trainer.blanks.batch` shows the resulting rows.

Each sample becomes one row: no sample is dropped, split or merged. Blanks never contain prompts,
`[CLS]` or eos, and prompts and `[CLS]` carry no loss; only a generated end of a text contains the
eos of its documents. If a sample drawn for sentences contains no whole sentence, it gets token
spans. A text with nothing to predict becomes a row without loss, and an empty text becomes an empty
row. A row depends on its text and key alone, never on the batch around it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from shards.errors import UserError
from shards.sampling.batch import Batch
from shards.sampling.permutation import Words
from trainer.blanks.batch import WIDTH_MULTIPLE, Blanks, GlmBatch, assemble
from trainer.blanks.sentences import choose_sentences, find_sentences, shorten_texts
from trainer.blanks.spans import (
    GenerationBlanks,
    choose_generation_blanks,
    choose_token_spans,
    noise_in_blanks,
    noise_in_context,
)
from trainer.blanks.text import (
    BlankSpans,
    Flags,
    Integers,
    Purpose,
    SampleRng,
    SpecialTokens,
    TextRows,
    find_runs,
    happens,
    integers_below,
    is_special,
    text_rows_of,
)

_ROUNDING = 1e-9
"""A probability below this is a rounding error of decimal fractions that add up to 0."""


class Objective(IntEnum):
    """The objective of a sample."""

    SPANS = 0
    SENTENCES = 1
    GENERATION = 2


@dataclass(frozen=True, kw_only=True)
class BlankOptions:
    """Options for making blanks; the defaults are GLM-10B's recipe (THUDM/GLM, ds_block_10B.sh).

    Raises:
        UserError: a value is out of its range.
    """

    bert_prob: float = 0.5
    """Probability of token spans."""
    sentence_prob: float = 0.3
    """Probability of sentence spans; the remainder to 1 is the probability of text generation."""
    span_ratio: float = 0.15
    """Share of the text that token spans and sentences cover."""
    single_span_prob: float = 0.0
    """Probability that a sample of token spans has a single blank."""
    infill_prob: float = 0.5
    """Probability that the model generates a run inside a text of one document, closed by eop,
    instead of the end of the text. THUDM/GLM's gpt_infill_prob is the opposite: 1 minus this."""
    gpt_min_ratio: float = 0.25
    """The minimum share of a text that is generated."""
    short_seq_prob: float = 0.02
    """Probability that a part of the text replaces the whole."""
    block_mask_prob: float = 0.1
    """Probability that a token within a token span is shown as [dBLOCK]."""
    context_mask_ratio: float = 0.0
    """Share of the text that is shown as [dBLOCK], within three tokens of a token span."""
    random_position: bool = False
    """Whether positions begin at a random number that keeps them below the model's limit."""
    task_mask: bool = True
    """Whether [sMASK] marks sentences and [gMASK] generation; otherwise [MASK] marks every
    blank."""

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
        """The roles of the special tokens that blanks with these options need."""
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


class BlankInfilling:
    """Makes blanks in batches of GLM windows.

    Args:
        token_ids: the tokenizer's special tokens by role, `manifest.tokenizer.special`.
        options: how to make blanks.
        max_positions: the number of positions P of the model. No window may have more tokens, so
            that positions are below P and block positions are at most P.
        sentence_ends: bool[vocabulary], `Vocabulary.sentence_end`.
        isolate: whether to number the document of each token, for attention that does not cross
            documents.

    Raises:
        UserError: the tokenizer lacks a special token that the options need.
    """

    def __init__(
        self,
        token_ids: Mapping[str, int],
        options: BlankOptions,
        *,
        max_positions: int,
        sentence_ends: NDArray[np.bool_],
        isolate: bool = False,
    ) -> None:
        self.options = options
        self.max_positions = max_positions
        self._isolate = isolate
        special = SpecialTokens.of(token_ids, needs=options.roles, sentence_ends=sentence_ends)
        self._special = special
        by_objective = [special.mask, special.smask, special.gmask]
        self._masks = np.array(by_objective if options.task_mask else [special.mask] * 3)

    @property
    def max_length(self) -> int:
        """The maximum length of a row: n + 2 max(1, 15 % of n), rounded up to a multiple of 64.

        Each blank adds its `[MASK]` and `sop`, and the number of blanks is largest if each covers
        one token of the budget. A row of text generation has n + 2 tokens.
        """
        num_blanks = max(1, int(self.options.span_ratio * self.max_positions))
        return -(-(self.max_positions + 2 * num_blanks) // WIDTH_MULTIPLE) * WIDTH_MULTIPLE

    def __call__(self, batch: Batch, keys: Words, *, sources: Integers) -> GlmBatch:
        """Return the rows made from GLM windows.

        Args:
            batch: the windows.
            keys: uint64[b], the seed of all random choices about each sample.
            sources: int64[b], the number of each window's stream, which is passed through.

        Raises:
            ValueError: a window has more tokens than the model has positions.
        """
        if batch.lengths.max(initial=0) > self.max_positions:
            raise ValueError(
                f"a window has {batch.lengths.max()} tokens, the model {self.max_positions} "
                f"positions: cut windows with glm_windows({self.max_positions})"
            )
        rng = SampleRng(keys)
        text = shorten_texts(
            text_rows_of(batch, numbered=self._isolate),
            self._special,
            probability=self.options.short_seq_prob,
            max_positions=self.max_positions,
            rng=rng,
        )
        blanks, inputs = self._make_blanks(text, rng)
        rows = assemble(text, blanks, self._special, inputs=inputs, sources=sources, rng=rng)
        if self.options.random_position:
            self._shift(rows, rng)
        return rows

    def _make_blanks(self, text: TextRows, rng: SampleRng) -> tuple[Blanks, Integers]:
        """Return the blanks and the tokens that the model sees."""
        runs = find_runs(text, self._special)
        objectives = self._draw_objectives(rng)
        sentences = find_sentences(
            text,
            runs.in_rows(objectives == Objective.SENTENCES),
            self._special,
            max_size=self.max_positions - 1,
        )
        has_none = np.bincount(sentences.rows, minlength=len(objectives)) == 0
        objectives[(objectives == Objective.SENTENCES) & has_none] = Objective.SPANS
        budgets = self._budgets(text, runs.in_rows(objectives != Objective.GENERATION))
        for_spans = runs.in_rows(objectives == Objective.SPANS)
        options, max_size = self.options, self.max_positions - 1
        is_single = happens(rng.words(Purpose.IS_SINGLE), options.single_span_prob)
        spans = choose_token_spans(
            for_spans, np.where(is_single, 1, budgets), rng=rng, max_size=max_size
        )
        generated = choose_generation_blanks(
            text,
            runs.in_rows(objectives == Objective.GENERATION),
            min_ratio=options.gpt_min_ratio,
            infill_prob=options.infill_prob,
            max_size=max_size,
            rng=rng,
        )
        whole_sentences = choose_sentences(sentences, budgets, rng)
        all_spans, is_end = _join(spans, whole_sentences, generated)
        inputs = self._add_noise(text, for_spans, spans, rng)
        return Blanks(all_spans, is_end, self._masks[objectives], objectives), inputs

    def _draw_objectives(self, rng: SampleRng) -> Integers:
        words = rng.words(Purpose.OBJECTIVE)
        either = self.options.bert_prob + self.options.sentence_prob
        is_either = happens(words, either if self.options.generates else 1.0)
        objectives = np.where(is_either, int(Objective.SENTENCES), int(Objective.GENERATION))
        objectives[happens(words, self.options.bert_prob)] = Objective.SPANS
        return objectives

    def _budgets(self, text: TextRows, runs: BlankSpans) -> Integers:
        """Return each row's number of tokens to cover, a share of the text without prompts."""
        height, width = text.tokens.shape
        if not len(runs.rows):
            return np.ones(height, np.int64)
        special = is_special(text, self._special) & (np.arange(width) < text.lengths[:, None])
        num_special = np.bincount(np.flatnonzero(special) // width, minlength=height)
        lengths = num_special + np.bincount(runs.rows, runs.sizes, height)
        budgets: Integers = np.maximum((self.options.span_ratio * lengths).astype(np.int64), 1)
        return budgets

    def _add_noise(
        self, text: TextRows, runs: BlankSpans, blanks: BlankSpans, rng: SampleRng
    ) -> Integers:
        """Return the tokens after adding noise in and around the blanks."""
        options, tokens = self.options, text.tokens
        if options.block_mask_prob and len(blanks.rows):
            tokens = tokens.copy()
            tokens[noise_in_blanks(blanks, options.block_mask_prob, rng)] = self._special.dblock
        if options.context_mask_ratio and len(blanks.rows):
            tokens = tokens.copy()
            counts = (options.context_mask_ratio * text.lengths).astype(np.int64)
            tokens[noise_in_context(runs, blanks, counts, rng)] = self._special.dblock
        return tokens

    def _shift(self, rows: GlmBatch, rng: SampleRng) -> None:
        """Start the positions of each row at a random number."""
        spare = self.max_positions - np.maximum(rows.sep, 1) + 1
        words = rng.words(Purpose.SHIFT)
        inside = np.arange(rows.tokens.shape[1]) < rows.lengths[:, None]
        shifts = integers_below(words, spare)[:, None]
        rows.position_ids[:, 0] += np.where(inside, shifts, 0)


def _join(
    spans: BlankSpans, sentences: BlankSpans, generated: GenerationBlanks
) -> tuple[BlankSpans, Flags]:
    """Return all blanks, sorted by row, then start, and whether each is the end of a text."""
    columns = zip(spans, sentences, generated.spans, strict=True)
    rows, starts, sizes = (np.concatenate(column) for column in columns)
    is_end = np.zeros(len(rows), np.bool_)
    is_end[len(rows) - len(generated.is_end) :] = generated.is_end
    order = np.argsort(rows, kind="stable")  # the blanks of a row are of one kind and sorted
    return BlankSpans(rows[order], starts[order], sizes[order]), is_end[order]
