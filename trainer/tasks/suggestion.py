"""The task file that reads a file of items whose fields are not those of its task."""

import json
from collections.abc import Collection

_FORMATS = (
    (("instruction", "input"), "output"),
    (("instruction",), "output"),
    (("instruction", "context"), "response"),
    (("instruction",), "response"),
    (("content",), "summary"),
    (("document",), "summary"),
    (("text",), "summary"),
    (("article",), "highlights"),
    (("source",), "target"),
    (("prompt",), "completion"),
    (("prompt",), "response"),
    (("prompt",), "answer"),
    (("query",), "response"),
    (("question",), "answer"),
    (("input",), "output"),
)
"""Fields of prompts, and of answers, that files are published with; the first that fits counts."""


def suggested_task(fields: Collection[str]) -> str | None:
    """Return a task file, a line of JSON, for items with some fields; None if none is known."""
    for prompts, answer in _FORMATS:
        if {*prompts, answer} <= {*fields}:
            *first, last = prompts
            pattern = "\n".join([*(f"{{{name}}}" for name in first), f"{{{last}:cut}}"])
            task = {"pattern": pattern, "answer": f"{{{answer}}}", "length": 512}
            return json.dumps(task)
    return None
