"""How well a model answers while it is being trained: metrics of an epoch, predictions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainer.decode.prompt import Blank, Prompt
from trainer.decode.writer import text_of
from trainer.finetune.answers import Answer
from trainer.finetune.step import Tuner
from trainer.rank_writer import RankWriter
from trainer.tasks.question import Prediction, Question
from trainer.tasks.task import TEST, VALIDATION, Task
from trainer.tokenizer import TextTokenizer

KNOWN = "known"
"""The split of the validation items with their answers, where texts are asked for."""


_DECISIVE = "log_probability"
"""The first figure of texts that are judged by their loss."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """What is asked of a model, by whom."""

    task: Task
    questions: Mapping[str, Sequence[Question]]
    """By split, of those that there are."""
    tuner: Tuner
    writer: RankWriter
    tokenizer: TextTokenizer
    by_loss: bool
    """Texts are judged by their loss alone."""

    def metrics(self) -> dict[str, float] | None:
        """Return the figures of the validation items, the decisive one first; None if stopped.

        Without such items it is empty.
        """
        if VALIDATION not in self.questions:
            return {}
        known: dict[str, float] = {}
        if self.task.is_written:
            answers = self.tuner.answer(self.questions[KNOWN], stop=self.writer.stop.exit_code)
            if answers is None:
                return None
            known = _text_figures(answers)
            # A model that has diverged writes nothing that could be judged.
            if self.by_loss or not math.isfinite(known[_DECISIVE]):
                return known
        questions = self.questions[VALIDATION]
        predictions = self._predictions(questions)
        if predictions is None:
            return None
        return self.task.metrics(questions, predictions) | known

    def predictions(self) -> list[dict[str, object]] | None:
        """Return the lines of answers to the test items, none without them; None if stopped."""
        if TEST not in self.questions:
            return []
        predictions = self._predictions(self.questions[TEST])
        if predictions is None:
            return None
        return self.task.lines(self.questions[TEST], predictions)

    def _predictions(self, questions: Sequence[Question]) -> Sequence[Prediction] | None:
        if not self.task.is_written:
            answers = self.tuner.answer(questions, stop=self.writer.stop.exit_code)
            return None if answers is None else [answer.prediction for answer in answers]
        filled = self.writer.fill(len(questions), lambda number: self._prompt(questions[number]))
        if filled is None:
            return None
        return [text_of(answer.tokens, self.tokenizer).strip() for (answer,) in filled]

    def _prompt(self, question: Question) -> Prompt:
        """Return what a question's row asks, as the first token of its answer and what is before.

        As in THUDM/GLM (commit 4f61ed7, tasks/seq2seq), eop alone ends what fills a blank.
        """
        row = question.rows[0]
        *context, token = row.tokens.tolist()
        causal = row.position_ids is None
        position = len(context) if row.position_ids is None else int(row.position_ids[0, -1])
        return Prompt(
            context=tuple(context),
            blanks=(Blank(token=token, position=position, block_position=int(not causal)),),
            ends=frozenset({self.tokenizer.special["eos" if causal else "eop"]}),
            causal=causal,
        )


def _text_figures(answers: Sequence[Answer]) -> dict[str, float]:
    """Return the figures of texts that are known; the first is the better the higher."""
    count = max(1, sum(answer.num_targets for answer in answers))
    loss = sum(answer.loss for answer in answers) / count
    accuracy = sum(answer.correct for answer in answers) / count
    return {_DECISIVE: -loss, "token_accuracy": accuracy}
