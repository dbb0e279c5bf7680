"""Outputs that hold a dataset already, or one that is damaged; datasets that do not grow."""

import json
import os

from tests.refusals.refusal import LISTED, Accepted, refused
from tests.refusals.scenes import (
    TOKENIZER,
    Scene,
    dataset,
    holding,
    left_by,
    lines,
    page,
    together,
    wudao,
)
from tests.refusals.scenes_shards import GONE, cut, json_changed, linked, missing, sealed

RUN = f"pipelines.wudao --input in {TOKENIZER} --output data"
APPEND = f"{RUN} --append"


def pages(name: str, first: int, last: int, *, text: str = "") -> Scene:
    """The scene of a further file of these pages."""
    records = [page(number) for number in range(first, last)]
    return holding(f"in/{name}", json.dumps(records, ensure_ascii=False) + text)


def made_with(flags: str) -> Scene:
    return left_by(f"{RUN} {flags}", wudao)


def later(path: str) -> Scene:
    """A file with the same bytes and another time."""
    return lambda folder: os.utime(folder / path, (1, 1))


new = together(dataset, pages("part-2.json", 6, 9))
EACH = "data/g0001-*/"

OPTIONS = (
    "--min-chars 100",
    "--title always",
    "--title-separator -",
    "--seed 1",
    "--languages zh",
    "--language-threshold 0.6",
    "--lid-chars 1024",
    "--quality en=gopher+c4",
    "--pii mask",
    "--keep-dropped",
    "--sample 0.5",
    "--split-bytes 1000",
    "--dedup none",
    "--minhash-threshold 0.8",
    "--validation 0",
    "--shards 2",
    "--shard-tokens 1000",
    "--filter rules:none",
    "--decontaminate bench.txt",
)
"""Options that decide the bytes of a dataset, which was made without them."""

SAME = "--workers 2 --max-reject-rate 0.5 --skip-unreadable --keep-segments"
"""Options that do not."""

more = together(
    dataset,
    holding("rules.py", "def none(batch): return [None] * len(batch)\n"),
    holding("bench.txt", "one two three four five six seven eight nine ten\n"),
)

OF_RUN = {
    "made of other files: one is new": new,
    "made of other files: one is gone": together(new, missing("in/part-1.json")),
    "made of other files: one is longer": together(dataset, pages("part-1.json", 0, 7)),
    "damaged: a shard is missing": together(dataset, missing(EACH + "wudao/*.bin")),
    "damaged: a shard is cut": together(dataset, cut(EACH + "wudao/*.idx")),
    "damaged: the manifest was edited": together(
        dataset, json_changed("data/manifest.json", "corpus", "x")
    ),
    "inputs.json: no list": together(dataset, holding("data/inputs.json", "{}")),
}

OF_APPEND = {
    "damaged: signatures are missing": together(new, missing(EACH + "signatures/*.arrow")),
    "inputs.json: without a time": together(
        new, json_changed("data/inputs.json", "0.mtime_ns", GONE)
    ),
    "ledger: empty": together(new, holding("data/ledger.json", "{}")),
    "ledger: a list": together(new, holding("data/ledger.json", "[]")),
    "ledger: of another seal": together(
        new, holding("data/ledger.json", '{"number": 2, "inputs": [], "seal": 7}')
    ),
    "append: a file has another time": together(new, later("in/part-1.json")),
    "append: a dataset of links": together(new, linked),
    "append: no signatures": together(new, sealed("generations.0.signatures", [])),
}

other_bounds = together(
    made_with("--quality zh=glm"),
    pages("part-2.json", 6, 9),
    sealed("options.quality.bounds.zh.0.bounds.min_chars", 99.0),
)
"""A dataset that another version made, in which the bounds of a profile were others."""

ROWS = (
    refused(
        "made with other options",
        f"{RUN} {' '.join(OPTIONS)}",
        scene=more,
        before="one worker reads all of it",
    ),
    Accepted(
        name="made with the same options",
        command=f"{RUN} {SAME}",
        scene=dataset,
        says="data is complete|has all|holds",
        writes=(),
    ),
    *(refused(name, RUN, scene=scene) for name, scene in OF_RUN.items()),
    *(refused(name, APPEND, scene=scene) for name, scene in OF_APPEND.items()),
    refused(
        "append: a profile with other bounds", f"{APPEND} --quality zh=glm", scene=other_bounds
    ),
    refused(
        "append: another corpus",
        f"pipelines.text --input in {TOKENIZER} --output data --append",
        scene=together(new, lines),
    ),
    refused(
        "append: changed, and nothing known of documents",
        f"{APPEND} --dedup none --allow-changed",
        scene=together(made_with("--dedup none"), pages("part-1.json", 0, 7)),
    ),
    refused(
        "append: another source",
        f"pipelines.wudao --input News=in {TOKENIZER} --output data --append",
        scene=together(
            left_by(f"pipelines.wudao --input news=in {TOKENIZER} --output data", wudao),
            pages("part-2.json", 6, 9),
        ),
    ),
    refused(
        "append: all that is new is damaged",
        APPEND,
        before=rf"{LISTED}.*2 documents \| 0 kept \| 2 dropped",
        writes=("data/.work*",),
        scene=together(
            dataset, holding("in/part-2.json", '[{"contents": "x"}, {"contents": "y"}]')
        ),
    ),
    refused(
        "part: merge without one part",
        before="one worker reads all of it: .* 2 files, ",
        writes=("data/.work/*",),
        command=f"{RUN} --split-bytes 2k --part merge",  # else one task maps both files
        scene=left_by(
            f"{RUN} --split-bytes 2k --part 1/2", together(wudao, pages("part-2.json", 6, 9))
        ),
    ),
    refused(
        "plan: records that another corpus reads",
        f"pipelines.text --input in {TOKENIZER} --plan",
        scene=wudao,
    ),
    refused(
        "plan: nothing is kept",
        f"pipelines.wudao --input in {TOKENIZER} --plan --language-threshold 1",
        scene=wudao,
        before="6 dropped",
    ),
)
