"""Zhihu: JSON lines, each with an answer and a question, which is a prompt that has no loss.

The prompt and the rule follow the reference GLM (THUDM/GLM data_utils/corpora.py, zhihu): an answer
has more than 100 characters, or more than 1,000 votes.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.corpus import (
    SEGMENTS,
    CorpusSpec,
    Document,
    InputFormat,
    Options,
    as_text,
    count,
    option,
    optional_text,
    required_text,
    text_columns,
)
from pipelines.corpus.fields import shortened
from pipelines.job.command import main
from pipelines.read.names import JSON_FILES

_DIGITS = 18
"""The maximum number of digits of a parsed vote count; a longer number exceeds any limit."""


@dataclass(frozen=True, kw_only=True)
class ZhihuOptions(Options):
    """The options of pipelines.zhihu."""

    min_chars: int = option(101, affects=SEGMENTS, metavar="N", type=count)
    """Minimum number of characters per answer."""
    min_votes: int = option(1001, affects=SEGMENTS, metavar="N", type=count)
    """Keep shorter answers that have at least this many votes."""


def documents(record: Mapping[str, Any], options: ZhihuOptions) -> tuple[Document]:
    """Return the document of one answer."""
    title, answer = (required_text(record, name) for name in ("q_title", "ans-content"))
    about, user = (optional_text(record, name) for name in ("q-content", "user-signature"))
    votes = as_text(record.get("ans-up-num"))
    prompt = f"问题：{title}问题描述：{shortened(about)}回答用户：{user} 回答："
    long = len(answer) >= options.min_chars
    liked = votes.isdecimal() and (len(votes) > _DIGITS or int(votes) >= options.min_votes)
    reason = None if long or liked else "too-short"
    return (Document(answer, {"votes": votes}, reason, prompt),)


CORPUS = CorpusSpec(
    name="zhihu",
    about="Clean, filter, deduplicate, tokenize and shuffle Zhihu into token shards.",
    pattern=JSON_FILES,
    options=ZhihuOptions,
    input_format=InputFormat(text_fields=("ans-content",)),
    provenance=text_columns("votes"),
    documents=documents,
)

if __name__ == "__main__":
    sys.exit(main("pipelines.zhihu", sys.argv[1:]))
