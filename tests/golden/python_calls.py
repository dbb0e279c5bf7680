"""Builds and opens datasets from Python, and prints the results of the calls.

python -m tests.golden.python_calls made|opened|planned
"""

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipelines import build, estimate
from shards import VALIDATION, DamageError, Dataset, UserError
from tests.golden.page_text import lines_of

_TOKENIZER = "sentencepiece:tok.model"


def _outcome_of(call: Callable[[], object]) -> str:
    try:
        return f"made {call()}"
    except (UserError, DamageError, IndexError, KeyError, TypeError) as error:
        return f"{type(error).__name__}: {error}"


def _without_times(text: str) -> str:
    """Mask times, and fold the runs of spaces that depend on the width of times."""
    return re.sub(r" +", " ", re.sub(r"\d[\d.,]* (s|min|h|days)\b", "TIME", text))


def made() -> None:
    """Call build with values of every type."""
    first = {
        "input": {"web": "in", "asked": "zhihu:asked"},
        "output": Path("data"),
        "tokenizer": _TOKENIZER,
        "provenance": ["url", "title"],
        "languages": ["zh", "en"],
        "threshold": {"gopher.min_words": 90},
        "quality": "en=gopher",
        "validation": "5%",
        "shard_tokens": "4k",
        "dedup": "minhash",
        "keep_dropped": True,
        "max_reject_rate": 1,
    }
    calls: Mapping[str, Mapping[str, Any]] = {
        "first": first,
        "again": first,
        "other": {**first, "seed": 3},
        "over": {**first, "seed": 3, "overwrite": True, "languages": "zh", "shards": 4},
        "grown": {
            "input": ["in"],
            "output": "grown",
            "tokenizer": _TOKENIZER,
            "append": True,
            "workers": 1,
        },
        "wrong value": {"input": "in", "dedup": "fuzzy"},
        "wrong name": {"input": "in", "tokeniser": _TOKENIZER},
        "wrong engine": {"input": "in", "not_known": 1},
        "a watch": {"input": "in", "watch": True},
        "a share": {"input": "in", "part": "1/2", "tokenizer": _TOKENIZER},
        "no tokenizer": {"input": "in"},
    }
    for name, options in calls.items():
        try:
            built = build("text", **{"max_reject_rate": 1, **options})
        except UserError as error:
            print(f"== {name}: {error}")
            continue
        print(f"== {name}: {_without_times(repr(built))} {built.seconds > 0}")
        print(built)
        print(*lines_of(built._repr_html_()), built.account, sep="\n")
        print(built.table.to_pylist(), built.report, built.manifest.number)
    for corpus in ("texts", "__main__", sys, "pipelines.text"):
        print(corpus if isinstance(corpus, str) else "sys", _outcome_of(lambda c=corpus: build(c)))


def opened() -> None:
    """Open a dataset, and print the parts of it that Python can read."""
    data = Dataset.open("data")
    print(repr(data), *lines_of(data._repr_html_()), sep="\n")
    print(data.sources, data.shown_directory, len(data.vocabulary), sorted(data.removed))
    print([_outcome_of(lambda n=number: repr(data.as_of(n))) for number in range(4)])
    for source in (None, *data.sources, "other"):
        for split in ("train", VALIDATION):
            print(source, split, _outcome_of(lambda s=source, p=split: _of(data, s, p)))
    for path in ("data@1", "data@9", "none", "in", "data@x"):
        print(path, _outcome_of(lambda p=path: repr(Dataset.open(p))))


def _of(data: Dataset, source: str | None, split: str) -> str:
    documents = data.documents(source, split=split)
    every = list(documents)
    sums = [int(tokens.astype("int64").sum()) for tokens in every]
    places = []
    for number in (0, len(documents) // 2, len(documents) - 1):
        shard, row = documents.locate(number)
        places.append((number, row, len(documents[number]), shard.value("path", row)))
    wrong = [_outcome_of(lambda n=number: documents[n].sum()) for number in (-1, len(documents))]
    shards = [
        (
            len(shard),
            int(shard.tokens.sum(dtype="int64")),
            int(shard.ids.sum(dtype="int64")),
            shard.lengths.tolist()[:3],
            shard.prompts.tolist()[:3],
            shard.offsets.tolist()[:3],
            shard.removed.tolist(),
            shard.is_unmasked,
            shard.column("language").to_pylist()[:3],
            shard.check_lengths(),
            _outcome_of(lambda one=shard: len(one[0])),
            _outcome_of(lambda one=shard: one[len(one)]),
            _outcome_of(lambda one=shard: one.value("none", 0)),
        )
        for shard in documents.shards()
    ]
    return f"{len(documents)} {sums} {places} {wrong} {shards} {documents.shard(0).entry.tokens}"


_ANY = {"languages": "all", "language_threshold": 0, "validation": 0.05}
_PLANS: Mapping[str, Mapping[str, Any]] = {
    "plain": {"workers": 3},
    "near": {"dedup": "minhash", "keep_dropped": True, "quality": "en=gopher", "pii": "mask"},
    "apart": {"dedup": "minhash", "shards": 4, "validation": 0},
    "none": {"dedup": "none", "validation": 0.05, "shard_tokens": 2_000},
    "far": {"output": "memory://bucket/far", "keep_dropped": True},
    "short": {"input": {"web": "in", "short": "short"}, "sample": 0.5, **_ANY},
}


def planned() -> None:
    """Print estimates of runs, but not the figures that depend on measured times."""
    given = {"web": "in", "asked": "zhihu:asked"}
    shared = {"input": given, "output": "other", "tokenizer": _TOKENIZER, "max_reject_rate": 1}
    for name, options in _PLANS.items():
        plan = estimate("text", **{**shared, **options})
        print(f"== {name}")
        for line in str(plan).splitlines():
            print(_without_times(line))
        print(plan.workers, plan.documents, plan.tokens, plan.shards, plan.seconds > 0)
        figures = re.findall(r"(\w+)=", repr(plan))
        print(figures, plan._repr_html_()[:5], plan._repr_html_().endswith("</pre>"))
    print(_outcome_of(lambda: estimate("text", **shared, workers=0).workers))
    print(_outcome_of(lambda: estimate("text", **shared, split_byte=1)))
    print(Path("other").exists())


if __name__ == "__main__":
    {"made": made, "opened": opened, "planned": planned}[sys.argv[1]]()
