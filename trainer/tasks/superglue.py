"""Tasks of SuperGLUE whose items need code: COPA, MultiRC, ReCoRD and WSC.

The code makes the fields for the patterns in descriptions/ from the items. The rules are those of
THUDM/GLM (commit 4f61ed7, tasks/superglue).
"""

import random
import re
import string
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from trainer.tasks.choices import ChoiceTask
from trainer.tasks.items import NAME, Item
from trainer.tasks.metrics import Metrics, f1, labels_of, per_cent
from trainer.tasks.rows import Answer, Example
from trainer.tasks.task import EncodeContext, Lines
from trainer.tasks.template import open_ended, plain

_MAX_WRONG = 9
"""The maximum number of wrong choices of an item in training."""
_GAP = "@placeholder"
_JOINERS = {"cause": " because", "effect": ", so"}
_FALSE_TRUE = ("False", "True")

Expanded = Iterator[tuple[Item, Example]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Copa(ChoiceTask):
    """Choose which of two sentences is the cause or the effect of a third sentence."""

    def expand(self, items: Sequence[Item], context: EncodeContext) -> Expanded:
        """Yield the items; for training, then yield them again with swapped choices."""
        for is_mirror in (False, True) if context.is_train else (False,):
            for item in items:
                idx, fields = item.value("idx"), _copa_fields(item)
                label = item.label((0, 1), is_needed=not context.is_test)
                if is_mirror:
                    fields = {**fields, "one": fields["two"], "two": fields["one"]}
                yield (
                    replace(item, fields=fields),
                    Example(
                        guid=context.guid(f"{idx}m" if is_mirror else idx),
                        idx=idx,
                        label=None if label is None else label ^ is_mirror,
                    ),
                )


def _copa_fields(item: Item) -> dict[str, str]:
    relation = item.text("question")
    if relation not in _JOINERS:
        raise item.wrong(f'the field "question" is {relation!r}. Expected cause or effect.')
    choices = [item.text(name) for name in ("choice1", "choice2")]
    one, two = (open_ended(text[:1].lower() + text[1:]) for text in choices)
    joiner = _JOINERS[relation]
    premise, word = item.text("premise"), joiner.removeprefix(",")
    return {"one": one, "two": two, "premise": premise, "joiner": joiner, "word": word}


@dataclass(frozen=True, kw_only=True, eq=False)
class MultiRC(ChoiceTask):
    """Decide for each answer to a question about a passage whether the answer is right."""

    def expand(self, items: Sequence[Item], context: EncodeContext) -> Expanded:
        """Yield each answer to each question about a passage."""
        for item in items:
            passage = item.text("passage", "text").rstrip()
            for asked in item.parts("passage", "questions"):
                question = asked.text("question").rstrip()
                for part in asked.parts("answers"):
                    fields = {"passage": passage, "question": question, "answer": part.text("text")}
                    idx = [one.value("idx", of=NAME) for one in (item, asked, part)]
                    guid = context.guid("p{}-q{}-a{}".format(*idx))
                    label = part.label((0, 1), is_needed=not context.is_test)
                    yield replace(item, fields=fields), Example(guid=guid, idx=idx, label=label)

    def metrics(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Metrics:
        """Return F1 over all answers, and exact match over questions; see `Task.metrics`."""
        labels = labels_of(examples)
        hits = [label == given for label, given in zip(labels, answers, strict=True)]
        by_question: dict[Any, list[bool]] = defaultdict(list)
        for example, hit in zip(examples, hits, strict=True):
            # The reference groups by the question's number alone, which is unique over the
            # passages.
            by_question[example.idx[1]].append(hit)
        whole = [all(group) for group in by_question.values()]
        return {
            "f1a": f1(labels, answers, of=1),
            "em": sum(whole) / len(whole),
            "acc": per_cent(hits),
        }

    def prediction_lines(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Lines:
        """Return one line per passage, with its questions and answers nested."""
        passages: dict[Any, dict[Any, list[Any]]] = defaultdict(lambda: defaultdict(list))
        for line in super().prediction_lines(examples, answers):
            passage, number, answer = line["idx"]
            passages[passage][number].append({"idx": answer, "label": int(line["label"])})
        return [
            {
                "idx": idx,
                "passage": {"questions": [{"idx": n, "answers": a} for n, a in asked.items()]},
            }
            for idx, asked in passages.items()
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReCoRD(ChoiceTask):
    """Choose the entity of a passage that fills the gap in a query about the passage."""

    MIN_CHOICES = 1

    def expand(self, items: Sequence[Item], context: EncodeContext) -> Expanded:
        """Yield each query about a passage; for training, once per right answer."""
        draw = random.Random(42)  # the reference's seed; which entities it draws differs by run
        for item in items:
            text = plain(item.text("passage", "text"))
            names = sorted({_entity(part, text) for part in item.parts("passage", "entities")})
            for query in item.parts("qas"):
                answers = _answers(query, context)
                before, after = _around_gap(query)
                if not names:
                    raise query.wrong("the passage has no entities to choose from.")
                fields = {"passage": text.replace("@highlight\n", "- ")}
                fields |= {"before": before, "after": after}
                guid = context.guid(f"p{item.value('idx')}-q{query.value('idx')}")
                for ending, choices, label in _competing(names, answers, context, draw):
                    yield (
                        replace(item, fields={**fields, "choices": [f" {one}" for one in choices]}),
                        Example(
                            guid=f"{guid}{ending}",
                            idx=query.value("idx"),
                            label=label,
                            facts={"choices": tuple(choices), "answers": answers},
                        ),
                    )

    def metrics(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Metrics:
        """Return exact match and F1 in per cent, each against the best of a query's answers."""
        exact, overlaps = [], []
        for example, given in zip(examples, answers, strict=True):
            words = _words(self.as_submitted(example, given))
            known = [_words(answer) for answer in (example.facts or {})["answers"]]
            exact.append(words in known)
            overlaps.append(max((_overlap(words, one) for one in known), default=0.0))
        return {"em": per_cent(exact), "f1": 100 * sum(overlaps) / len(examples)}

    def as_submitted(self, example: Example, given: Answer) -> str:
        """Return the entity that an answer selects."""
        choices: tuple[str, ...] = (example.facts or {})["choices"]
        # If there is a single choice, the answer is whether that entity is the most probable text.
        return choices[int(given) if len(choices) > 1 else 0]


def _competing(
    names: Sequence[str], answers: Sequence[str], context: EncodeContext, draw: random.Random
) -> Iterator[tuple[str, Sequence[str], int | None]]:
    """Yield the suffix of a query's name, its choices, and the number of the right choice.

    In training there is one query per right answer, with at most nine wrong choices. Otherwise
    there is one query with all entities, of which several may be right.
    """
    if not context.is_train:
        yield "", names, next((at for at, one in enumerate(names) if one in answers), None)
        return
    wrong = [name for name in names if name not in answers]
    for at, answer in enumerate(answers):
        drawn = draw.sample(wrong, _MAX_WRONG) if len(wrong) > _MAX_WRONG else wrong
        yield f"-a{at}", [answer, *drawn], 0


def _answers(query: Item, context: EncodeContext) -> list[str]:
    if context.is_test and not query.has("answers"):
        return []
    answers = list(dict.fromkeys(plain(part.text("text")) for part in query.parts("answers")))
    if not answers and not context.is_test:
        raise query.wrong("a query has no answers, and they are needed.")
    return answers


def _around_gap(query: Item) -> list[str]:
    text = plain(query.text("query"))
    if text.count(_GAP) != 1:
        raise query.wrong(f"the query {text[:60]!r} should have {_GAP} once.")
    return text.split(_GAP)


def _entity(part: Item, text: str) -> str:
    first, last = part.value("start", of=int), part.value("end", of=int)
    if not 0 <= first <= last < len(text):
        raise part.wrong(
            f"an entity reaches from character {first} to {last}, and the passage has {len(text)}."
        )
    return text[first : last + 1]


def _words(answer: str) -> list[str]:
    """Return the words of an answer in lower case, without punctuation or articles."""
    kept = "".join(sign for sign in answer.lower() if sign not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", kept).split()


def _overlap(one: list[str], two: list[str]) -> float:
    both = sum((Counter(one) & Counter(two)).values())
    return 2 * both / (len(one) + len(two)) if both else 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Wsc(ChoiceTask):
    """Decide whether a pronoun refers to a name.

    If --candidates is not given, the model is trained to generate the right name, and an item
    counts as true if the name is the most probable text. If it is given, an item counts as true if
    the name is the best choice.
    """

    USED_OPTIONS: ClassVar[tuple[str, ...]] = ("form", "length", "pattern", "candidates")
    MIN_CHOICES = 1

    def expand(self, items: Sequence[Item], context: EncodeContext) -> Expanded:
        """Yield the items; for training, only the items with the right name."""
        for item in items:
            is_true = item.label(_FALSE_TRUE, is_needed=not context.is_test)
            if context.is_train and not is_true:
                continue  # if the name is wrong, the right name is not known
            name, idx = item.text("target", "span1_text"), item.value("idx")
            fields = {"text": _marked(item), "pronoun": item.text("target", "span2_text")}
            for number, others in enumerate(_candidates(item, name, context)):
                choices = [f" {choice}" for choice in (name, *others)]
                yield (
                    replace(item, fields={**fields, "choices": choices}),
                    Example(
                        guid=context.guid(f"{idx}-{number}" if number else idx),
                        idx=idx,
                        label=(0 if is_true else None) if others else is_true,
                        facts={"is_true": is_true, "has_candidates": bool(others)},
                    ),
                )

    def metrics(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Metrics:
        """Return the accuracy of the decisions between true and false, in per cent."""
        known = labels_of([replace(one, label=(one.facts or {})["is_true"]) for one in examples])
        given = (self.as_submitted(*pair) for pair in zip(examples, answers, strict=True))
        pairs = zip(known, given, strict=True)
        return {"accuracy": per_cent([_FALSE_TRUE[label] == one for label, one in pairs])}

    def as_submitted(self, example: Example, given: Answer) -> str:
        """Return "True" or "False" for an answer."""
        has_candidates = (example.facts or {})["has_candidates"]
        return _FALSE_TRUE[int(given == 0) if has_candidates else int(given)]


def _candidates(item: Item, own: str, context: EncodeContext) -> list[list[str]]:
    """Return groups of an item's candidates other than its own name, without duplicates."""
    if not context.options.candidates:
        return [[]]
    given = dict.fromkeys(part.text("text") for part in item.parts("candidates"))
    names = [name for name in given if name != own]  # it would compete with itself
    if not names:
        raise item.wrong("there are no other candidates, and --candidates was given.")
    if not context.is_train or len(names) <= _MAX_WRONG:
        return [names]
    # The last group is filled with the first names.
    return [
        (names[at : at + _MAX_WRONG] + names)[:_MAX_WRONG]
        for at in range(0, len(names), _MAX_WRONG)
    ]


def _marked(item: Item) -> str:
    """Return the text with its pronoun between asterisks, and words joined by single spaces.

    An index that is off by one is corrected, and punctuation directly after the pronoun is split
    off, because some items of the data need this.

    Raises:
        UserError: the pronoun is not at its index.
    """
    words, pronoun = plain(item.text("text")).split(), item.text("target", "span2_text")
    place = item.value("target", "span2_index", of=int)
    near = [at for at in (place, place - 1, place + 1) if 0 <= at < len(words)]
    found = [at for at in near if words[at] == pronoun]
    if not found and place in near and pronoun and words[place].startswith(pronoun):
        words[place : place + 1] = [pronoun, words[place][len(pronoun) :]]
        found = [place]
    if not found:
        there = repr(words[place]) if place in near else f"nothing of its {len(words)} words"
        raise item.wrong(
            f"the pronoun {pronoun!r} should be word {place} of the text (from 0 on), and there "
            f"is {there}. Correct target.span2_index or target.span2_text."
        )
    words[found[0]] = f"*{pronoun}*"
    return " ".join(words)
