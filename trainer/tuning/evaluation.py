"""How well a model answers while it is being trained: metrics of an epoch, predictions."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from trainer.tasks.question import Prediction, Question
from trainer.tasks.task import TEST, VALIDATION, Task
from trainer.tuning.answers import Answer
from trainer.tuning.step import Tuner
from trainer.tuning.writing import Scribe

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
    scribe: Scribe
    by_loss: bool
    """Texts are judged by their loss alone."""

    def metrics(self, *, stop: Callable[[], int]) -> dict[str, float] | None:
        """Return the figures of the validation items, the decisive one first; None if stopped.

        Without such items it is empty.
        """
        if VALIDATION not in self.questions:
            return {}
        known: dict[str, float] = {}
        if self.task.is_written:
            answers = self.tuner.answer(self.questions[KNOWN], stop=stop)
            if answers is None:
                return None
            known = _text_figures(answers)
            # A model that has diverged writes nothing that could be judged.
            if self.by_loss or not math.isfinite(known[_DECISIVE]):
                return known
        questions = self.questions[VALIDATION]
        predictions = self._predictions(questions, stop=stop)
        if predictions is None:
            return None
        return self.task.metrics(questions, predictions) | known

    def predictions(self, *, stop: Callable[[], int]) -> list[dict[str, object]] | None:
        """Return the lines of answers to the test items, none without them; None if stopped."""
        if TEST not in self.questions:
            return []
        predictions = self._predictions(self.questions[TEST], stop=stop)
        if predictions is None:
            return None
        return self.task.lines(self.questions[TEST], predictions)

    def _predictions(
        self, questions: Sequence[Question], *, stop: Callable[[], int]
    ) -> Sequence[Prediction] | None:
        if self.task.is_written:
            return self.scribe.write(questions, stop=stop)
        answers = self.tuner.answer(questions, stop=stop)
        return None if answers is None else [answer.prediction for answer in answers]


def _text_figures(answers: Sequence[Answer]) -> dict[str, float]:
    """Return the figures of texts that are known; the first is the better the higher."""
    count = max(1, sum(answer.num_targets for answer in answers))
    loss = sum(answer.loss for answer in answers) / count
    accuracy = sum(answer.correct for answer in answers) / count
    return {_DECISIVE: -loss, "token_accuracy": accuracy}
