"""CLUE's Chinese tasks that THUDM/GLM has: TNEWS, AFQMC, CLUEWSC (CMRC is in sequences).

Patterns and words are those of commit 4f61ed7, tasks/superglue/pvp. Of TNEWS's words, one has two
tokens with the reference's tokenizer, so that they are scored as answers here.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from trainer.tasks.cloze import MASK, Pattern, cut
from trainer.tasks.counting import accuracy
from trainer.tasks.draft import Draft, questions_of
from trainer.tasks.items import Item, names_of, read_items
from trainer.tasks.question import Question
from trainer.tasks.task import SPELLED, SPLITS, TEST, Asked, Defaults, Prediction, Task

_TNEWS = {
    "100": "故事",
    "101": "文化",
    "102": "娱乐",
    "103": "体育",
    "104": "金融",
    "106": "居家",
    "107": "汽车",
    "108": "教育",
    "109": "科技",
    "110": "军事",
    "112": "旅游",
    "113": "世界",
    "114": "股票",
    "115": "农业",
    "116": "游戏",
}
_AFQMC = {"0": "不是", "1": "是"}
_WSC = {"false": "不是", "true": "是"}

Fill = Callable[[Item, int], tuple[Pattern, tuple[str, str]]]
"""An item and the number of a pattern to the pattern and the two texts of a classifier."""


def _tnews(item: Item, _pattern: int) -> tuple[Pattern, tuple[str, str]]:
    title, keywords = item.text("sentence"), item.text("keywords")
    pattern = Pattern(("标题：", cut(title), "关键词：", cut(keywords), "类别：", MASK))
    return pattern, (title, keywords)


def _afqmc(item: Item, pattern: int) -> tuple[Pattern, tuple[str, str]]:
    one, two = item.text("sentence1"), item.text("sentence2")
    second = (MASK, "，", cut(two)) if pattern else ("你是说", cut(two), "？", MASK, "。")
    return Pattern((cut(one), "？"), second), (one, two)


def _wsc(item: Item, pattern: int) -> tuple[Pattern, tuple[str, str]]:
    name, pronoun = item.text("target", "span1_text"), item.text("target", "span2_text")
    signs = list(item.text("text"))
    for sign, span, text in (("*", "span2", pronoun), ("#", "span1", name)):
        first = _place(item, text, item.number("target", f"{span}_index"))
        signs[first] = sign + signs[first]
        signs[first + len(text) - 1] += sign
    marked = "".join(signs)
    said = f"代词'*{pronoun}*'"
    if pattern:
        filled = Pattern(("在如下的句子中：", cut(marked), said, MASK, f"指'#{name}#'."))
    else:
        filled = Pattern((cut(marked), said, MASK, f"指#{name}#."))
    return filled, (marked, name)


def _place(item: Item, span: str, place: int) -> int:
    """Return where a span stands in an item's text: nearest to where it should."""
    text = item.text("text")
    places = [at for at in range(len(text)) if span and text.startswith(span, at)]
    if not places:
        raise item.wrong(f"the text does not hold {span!r}, which should be at character {place}.")
    return min(places, key=lambda at: abs(at - place))


def _task(name: str, words: dict[str, str], fill: Fill, defaults: Defaults) -> Task:
    labels = tuple(words)

    def drafts(path: Path, asked: Asked) -> Iterator[Draft]:
        items = read_items(path)
        names = names_of(items, keys=("id",))
        for number, item in enumerate(items):
            pattern, pair = fill(item, asked.pattern)
            yield Draft(
                item=item,
                name=number,
                idx=names[number],
                label=item.label(labels, is_needed=asked.split != TEST),
                patterns=(pattern,),
                answers=tuple(words.values()),
                are_words=True,
                pairs=(pair,),
            )

    def hand_in(
        questions: Sequence[Question], predictions: Sequence[Prediction]
    ) -> list[dict[str, Any]]:
        return [
            {"id": question.idx, "label": labels[int(given)]}
            for question, given in zip(questions, predictions, strict=True)
        ]

    return Task(
        name=name,
        ask=lambda path, asked: questions_of(drafts(path, asked), asked),
        measure=accuracy,
        hand_in=hand_in,
        defaults=defaults,
        files=dict(zip(SPLITS, ("train.json", "dev.json", "test.json"), strict=True)),
    )


CLUE = (
    _task("tnews", _TNEWS, _tnews, Defaults(form=SPELLED)),
    _task("afqmc", _AFQMC, _afqmc, Defaults(num_patterns=2)),
    _task("cluewsc", _WSC, _wsc, Defaults(num_patterns=2)),
)
