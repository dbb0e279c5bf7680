"""LAMBADA: the last word of a text (arXiv:1606.06031).

A glm fills it in as THUDM/GLM asks for it: the punctuation belongs to the word, and every one of
its tokens must be the most probable one. For a causal model the text is parted at its last space,
as lm-evaluation-harness does.
"""

import math
from dataclasses import dataclass
from pathlib import Path

from trainer.tasks.exam import Answers
from trainer.tasks.items import Item, read_some_items
from trainer.tasks.perplexity import exponential
from trainer.tasks.phrasing import Continuation, Pair, Phrasing
from trainer.tasks.rows import Row


@dataclass(frozen=True, kw_only=True, eq=False)
class LambadaExam:
    """All texts of a file."""

    phrasing: Phrasing
    asked: tuple[Continuation, ...]

    @classmethod
    def of(cls, path: Path, phrasing: Phrasing) -> "LambadaExam":
        """Return the exam in a file of JSON lines, {"text": "…"}.

        Raises:
            UserError: an item has no text of several words, or its last one does not fit.
        """
        pairs = [_pair(item, is_causal=phrasing.is_causal) for item in read_some_items(path)]
        return cls(phrasing=phrasing, asked=tuple(phrasing.continuations(pairs)))

    @property
    def pad(self) -> int:
        """The id that fills rows up."""
        return self.phrasing.pad

    @property
    def sizes(self) -> list[int]:
        """Tokens of each row."""
        return [len(asked) for asked in self.asked]

    @property
    def counts(self) -> dict[str, int]:
        """Texts, and those of which the beginning was cut."""
        return {"items": len(self.asked), "cut": sum(asked.is_cut for asked in self.asked)}

    def row(self, number: int) -> Row:
        """Return the row of a text."""
        return self.phrasing.row(self.asked[number])

    def figures(self, answers: Answers) -> dict[str, float]:
        """Return the share of words that were right, and their perplexity."""
        # Not finite: a model that has diverged; its arg-max says nothing.
        is_known = [math.isfinite(value) for value in answers.log_probability]
        right = answers.all_correct & is_known
        return {
            "acc": float(right.mean()),
            "perplexity": exponential(-float(answers.log_probability.mean())),
        }


def _pair(item: Item, *, is_causal: bool) -> Pair:
    text = item.words("text").strip()
    word = text.rsplit(" ", 1)[-1] if is_causal else text.split()[-1]
    context = text.removesuffix(word).rstrip()
    if not context:
        raise item.wrong(
            f'the field "text" is {text!r}. Expected at least two words; the last one is asked for.'
        )
    return Pair(context=context, answer=f" {word}", place=item.where)
