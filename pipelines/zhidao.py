"""Baidu Zhidao: JSON lines, each with a question and its answers; each answer becomes a document.

The question is a prompt, which has no loss. Prompt and rules follow the reference GLM (THUDM/GLM
data_utils/corpora.py, zhidao): the best answer needs more than 10 characters, each of the others
needs more than 100, and a question without a title is left out.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.corpus import (
    SEGMENTS,
    CorpusSpec,
    Document,
    InputFormat,
    Options,
    Rejected,
    count,
    option,
    optional_text,
    text_columns,
)
from pipelines.corpus.fields import shortened
from pipelines.job.command import main
from pipelines.read.names import JSON_FILES


@dataclass(frozen=True, kw_only=True)
class ZhidaoOptions(Options):
    """The options of pipelines.zhidao."""

    min_best_chars: int = option(11, affects=SEGMENTS, metavar="N", type=count)
    """Minimum number of characters of a best answer."""
    min_chars: int = option(101, affects=SEGMENTS, metavar="N", type=count)
    """Minimum number of characters of any other answer."""


def documents(record: Mapping[str, Any], options: ZhidaoOptions) -> Sequence[Document]:
    """Return a document for each answer to a question."""
    title, about = (optional_text(record, name) for name in ("title", "content"))
    prompt = f"问题：{title}问题描述：{shortened(about)}回答："
    if not title:
        return [Document("", reason="no-title")]
    least = {"best": options.min_best_chars, "other": options.min_chars}
    answers = [
        Document(text, {"answer": kind}, "too-short" if len(text) < least[kind] else None, prompt)
        for kind, text in _answers(record)
    ]
    return answers or [Document("", reason="no-answer")]


def _answers(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the kind, best or other, and the text of each answer."""
    best, others = record.get("best_answer"), record.get("other_answers") or []
    if not isinstance(others, list):
        raise Rejected("wrong-type", "other_answers")
    for kind, answer in [("best", best or {}), *(("other", other) for other in others)]:
        if not isinstance(answer, Mapping):
            name = "best_answer" if kind == "best" else "other_answers"
            raise Rejected("wrong-type", name)
        if answer:
            yield kind, optional_text(answer, "content")


CORPUS = CorpusSpec(
    name="zhidao",
    about="Clean, filter, deduplicate, tokenize and shuffle Zhidao into token shards.",
    pattern=JSON_FILES,
    options=ZhidaoOptions,
    input_format=InputFormat(text_fields=("title",)),
    provenance=text_columns("answer"),
    documents=documents,
)

if __name__ == "__main__":
    sys.exit(main("pipelines.zhidao", sys.argv[1:]))
