"""SuperGLUE's items that are no plain ones: those of COPA, MultiRC, ReCoRD and WSC.

Each becomes fields for the patterns in descriptions/. The rules are those of THUDM/GLM (commit
4f61ed7, tasks/superglue).
"""

import random
import re
import string
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from trainer.tasks.figures import Figures, f1, labels_of, per_cent
from trainer.tasks.items import NAME, Item
from trainer.tasks.rows import Answer, Example
from trainer.tasks.task import EncodeContext, Lines, TaskReader
from trainer.tasks.template import open_ended, plain

_MOST = 9
"""Wrong choices of an item in training."""
_GAP = "@placeholder"
_JOINERS = {"cause": " because", "effect": ", so"}
_FALSE_TRUE = ("False", "True")

Asked = Iterator[tuple[Item, Example]]


def _copa(items: Sequence[Item], context: EncodeContext) -> Asked:
    """Yield the items; for training all once more, their choices swapped."""
    for is_mirror in (False, True) if context.is_train else (False,):
        for item in items:
            relation, idx = item.text("question"), item.value("idx")
            if relation not in _JOINERS:
                raise item.wrong(f'the field "question" is {relation!r}. Expected cause or effect.')
            choices = [item.text(name) for name in ("choice1", "choice2")]
            one, two = (open_ended(text[:1].lower() + text[1:]) for text in choices)
            label = item.label((0, 1), is_needed=not context.is_test)
            fields = {
                **({"one": two, "two": one} if is_mirror else {"one": one, "two": two}),
                "premise": item.text("premise"),
                "joiner": _JOINERS[relation],
                "word": _JOINERS[relation].removeprefix(","),
            }
            yield (
                replace(item, fields=fields),
                Example(
                    guid=context.guid(f"{idx}m" if is_mirror else idx),
                    idx=idx,
                    label=None if label is None else label ^ is_mirror,
                ),
            )


def _multirc(items: Sequence[Item], context: EncodeContext) -> Asked:
    """Yield each answer to each question about a passage."""
    for item in items:
        passage = item.text("passage", "text").rstrip()
        for asking in item.parts("passage", "questions"):
            question = asking.text("question").rstrip()
            for part in asking.parts("answers"):
                fields = {"passage": passage, "question": question, "answer": part.text("text")}
                idx = [one.value("idx", of=NAME) for one in (item, asking, part)]
                yield (
                    replace(item, fields=fields),
                    Example(
                        guid=context.guid("p{}-q{}-a{}".format(*idx)),
                        idx=idx,
                        label=part.label((0, 1), is_needed=not context.is_test),
                    ),
                )


def _multirc_figures(questions: Sequence[Example], predictions: Sequence[Answer]) -> Figures:
    labels = labels_of(questions)
    hits = [label == given for label, given in zip(labels, predictions, strict=True)]
    by_question: dict[Any, list[bool]] = defaultdict(list)
    for question, hit in zip(questions, hits, strict=True):
        # The reference groups by the question's number alone, which is unique over the passages.
        by_question[question.idx[1]].append(hit)
    whole = [all(group) for group in by_question.values()]
    return {
        "f1a": f1(labels, predictions, of=1),
        "em": sum(whole) / len(whole),
        "acc": per_cent(hits),
    }


def _nested(lines: Lines) -> Lines:
    """Return a line for each passage, its questions and answers nested."""
    passages: dict[Any, dict[Any, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        passage, number, answer = line["idx"]
        passages[passage][number].append({"idx": answer, "label": int(line["label"])})
    return [
        {"idx": idx, "passage": {"questions": [{"idx": n, "answers": a} for n, a in asked.items()]}}
        for idx, asked in passages.items()
    ]


def _record(items: Sequence[Item], context: EncodeContext) -> Asked:
    draw = random.Random(42)  # the reference's seed; which entities it draws differs by run
    for item in items:
        text = plain(item.text("passage", "text"))
        names = sorted({_entity(part, text) for part in item.parts("passage", "entities")})
        for query in item.parts("qas"):
            answers = _answers(query, context)
            before, after = _around_gap(query)
            if not names:
                raise query.wrong("the passage has no entities to choose from.")
            for ending, choices, label in _competing(names, answers, context, draw):
                fields = {
                    "passage": text.replace("@highlight\n", "- "),
                    "before": before,
                    "after": after,
                    "choices": [f" {choice}" for choice in choices],
                }
                yield (
                    replace(item, fields=fields),
                    Example(
                        guid=context.guid(f"p{item.value('idx')}-q{query.value('idx')}{ending}"),
                        idx=query.value("idx"),
                        label=label,
                        facts={"choices": tuple(choices), "answers": answers},
                    ),
                )


def _competing(
    names: Sequence[str], answers: Sequence[str], context: EncodeContext, draw: random.Random
) -> Iterator[tuple[str, Sequence[str], int | None]]:
    """Yield the end of a question's name, its choices and the right one.

    In training a question for each right answer, against at most nine wrong ones; else one, with
    all entities, in which any of several may be right.
    """
    if not context.is_train:
        yield "", names, next((at for at, one in enumerate(names) if one in answers), None)
        return
    wrong = [name for name in names if name not in answers]
    for at, answer in enumerate(answers):
        drawn = draw.sample(wrong, _MOST) if len(wrong) > _MOST else wrong
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


def _record_figures(questions: Sequence[Example], predictions: Sequence[Answer]) -> Figures:
    """Return exact match and F1 in per cent, each against the best of a question's answers."""
    exact, overlaps = [], []
    for question, given in zip(questions, predictions, strict=True):
        said = _words(_chosen(question, given))
        known = [_words(answer) for answer in (question.facts or {})["answers"]]
        exact.append(said in known)
        overlaps.append(max((_overlap(said, one) for one in known), default=0.0))
    return {"em": per_cent(exact), "f1": 100 * sum(overlaps) / len(questions)}


def _chosen(question: Example, given: Answer) -> str:
    """Return the entity that a prediction stands for."""
    choices: tuple[str, ...] = (question.facts or {})["choices"]
    # Of a row alone it says whether the entity is the most probable text, not which one it is.
    return choices[int(given) if len(choices) > 1 else 0]


def _words(answer: str) -> list[str]:
    """Return an answer's words without case, punctuation and articles, as the task does."""
    kept = "".join(sign for sign in answer.lower() if sign not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", kept).split()


def _overlap(one: list[str], two: list[str]) -> float:
    both = sum((Counter(one) & Counter(two)).values())
    return 2 * both / (len(one) + len(two)) if both else 0.0


def _wsc(items: Sequence[Item], context: EncodeContext) -> Asked:
    """Yield whether a pronoun stands for a name.

    Without other candidates, the model is taught to write the right name, and an item is called
    true where the name is what it would write. With them, where the name is the best.
    """
    for item in items:
        is_true = item.label(_FALSE_TRUE, is_needed=not context.is_test)
        if context.is_train and not is_true:
            continue  # a wrong name teaches nothing: the right one is not told
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


def _candidates(item: Item, own: str, context: EncodeContext) -> list[list[str]]:
    """Return the groups of other names that an item is asked about with, each name once."""
    if not context.options.candidates:
        return [[]]
    given = dict.fromkeys(part.text("text") for part in item.parts("candidates"))
    names = [name for name in given if name != own]  # it would compete with itself
    if not names:
        raise item.wrong("there are no other candidates, and --candidates was given.")
    if not context.is_train or len(names) <= _MOST:
        return [names]
    # The last group is filled up from the first names.
    return [(names[at : at + _MOST] + names)[:_MOST] for at in range(0, len(names), _MOST)]


def _marked(item: Item) -> str:
    """Return the text with its pronoun between asterisks, words joined by single spaces.

    Indexes that are off by one are mended, and punctuation stuck to the pronoun is split off, as
    some items of the data need it.
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


def _says(question: Example, given: Answer) -> int:
    """Return 1 where a prediction calls an item true."""
    return int(given == 0) if (question.facts or {})["has_candidates"] else int(given)


def _wsc_figures(questions: Sequence[Example], predictions: Sequence[Answer]) -> Figures:
    known = labels_of([replace(one, label=(one.facts or {})["is_true"]) for one in questions])
    triples = zip(known, questions, predictions, strict=True)
    return {"accuracy": per_cent([label == _says(one, given) for label, one, given in triples])}


def _truth(question: Example, given: Answer) -> str:
    return _FALSE_TRUE[_says(question, given)]


READERS = {
    "copa": TaskReader(asked=_copa),
    "multirc": TaskReader(asked=_multirc, metrics=_multirc_figures, lines=_nested),
    "record": TaskReader(asked=_record, metrics=_record_figures, label=_chosen),
    "wsc": TaskReader(
        asked=_wsc,
        metrics=_wsc_figures,
        label=_truth,
        takes=("form", "length", "pattern", "candidates"),
    ),
}
"""By the name of the task."""
