"""Outputs that hold a dataset already, or one that is damaged; datasets that do not grow."""

import json
import os
from pathlib import Path

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
from tests.refusals.scenes_shards import GONE, cut, json_changed, missing, sealed

RUN = f"pipelines.wudao --input in {TOKENIZER} --output data"
APPEND = f"{RUN} --append"


def pages(name: str, first: int, last: int, *, text: str = "") -> Scene:
    """The scene of a further file of these pages."""
    records = [page(number) for number in range(first, last)]
    return holding(f"in/{name}", json.dumps(records, ensure_ascii=False) + text)


def made_with(flags: str) -> Scene:
    return left_by(f"{RUN} {flags}", wudao)


def without(path: str) -> Scene:
    return lambda folder: (folder / path).unlink()


def later(path: str) -> Scene:
    """A file with the same bytes and another time."""
    return lambda folder: os.utime(folder / path, (1, 1))


def of_links(folder: Path) -> None:
    """A dataset that consists of links."""
    (folder / "data").rename(folder / "real")
    (folder / "data").mkdir()
    for path in (folder / "real").rglob("*"):
        place = folder / "data" / path.relative_to(folder / "real")
        place.mkdir() if path.is_dir() else place.symlink_to(path)


of_two = left_by(RUN, together(wudao, pages("part-2.json", 6, 9)))
new = together(dataset, pages("part-2.json", 6, 9))
EACH = "data/g0001-*/"

OPTIONS = (
    "--min-chars 100",
    "--title always",
    "--title-separator -",
    "--seed 1",
    "--languages zh",
    "--language-threshold 0.6",
    "--lid-chars 0",
    "--quality en=gopher+c4",
    "--pii mask",
    "--keep-dropped",
    "--sample 0.5",
    "--split-bytes 1000",
    "--dedup none",
    "--minhash-threshold 0.8",
    "--clusters components",
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

ROWS = (
    refused("made with other options", f"{RUN} {' '.join(OPTIONS)}", scene=more),
    Accepted(
        name="made with the same options",
        command=f"{RUN} {SAME}",
        scene=dataset,
        says="data is complete|has all|holds",
        writes=(),
    ),
    refused("made of other files: one is new", RUN, scene=new),
    refused(
        "made of other files: one is gone", RUN, scene=together(new, without("in/part-1.json"))
    ),
    refused(
        "made of other files: one is longer",
        RUN,
        scene=together(dataset, pages("part-1.json", 0, 7)),
    ),
    refused(
        "damaged: a shard is missing", RUN, scene=together(dataset, missing(EACH + "wudao/*.bin"))
    ),
    refused("damaged: a shard is cut", RUN, scene=together(dataset, cut(EACH + "wudao/*.idx"))),
    refused(
        "damaged: signatures are missing",
        APPEND,
        scene=together(new, missing(EACH + "signatures/*.arrow")),
    ),
    refused(
        "damaged: the manifest was edited",
        RUN,
        scene=together(dataset, json_changed("data/manifest.json", "corpus", "x")),
    ),
    refused(
        "inputs.json: no list", RUN, scene=together(dataset, holding("data/inputs.json", "{}"))
    ),
    refused(
        "inputs.json: a number", RUN, scene=together(dataset, holding("data/inputs.json", "[7]"))
    ),
    refused(
        "inputs.json: without a time",
        APPEND,
        scene=together(new, json_changed("data/inputs.json", "0.mtime_ns", GONE)),
    ),
    refused(
        "inputs.json: a number for a path",
        APPEND,
        scene=together(new, json_changed("data/inputs.json", "0.from", 7)),
    ),
    refused("ledger: empty", APPEND, scene=together(new, holding("data/ledger.json", "{}"))),
    refused(
        "ledger: of another seal",
        APPEND,
        scene=together(new, holding("data/ledger.json", '{"number": 2, "inputs": [], "seal": 7}')),
    ),
    refused(
        "append: another corpus",
        f"pipelines.text --input in {TOKENIZER} --output data --append",
        scene=together(new, lines),
    ),
    refused("append: a file is longer", APPEND, scene=together(new, pages("part-1.json", 0, 7))),
    refused(
        "append: a file has another time", APPEND, scene=together(new, later("in/part-1.json"))
    ),
    refused(
        "append: two changes",
        APPEND,
        scene=together(of_two, pages("part-1.json", 0, 7), without("in/part-2.json")),
    ),
    refused(
        "append: changed, and nothing known of documents",
        f"{APPEND} --dedup none --allow-changed",
        scene=together(made_with("--dedup none"), pages("part-1.json", 0, 7)),
    ),
    refused("append: a dataset of links", APPEND, scene=together(new, of_links)),
    refused(
        "append: no signatures", APPEND, scene=together(new, sealed("generations.0.signatures", []))
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
        "part: merge without any part",
        writes=("data",),
        before=f"{LISTED}$",
        command=f"{RUN} --part merge",
        scene=wudao,
    ),
    refused(
        "part: merge without one part",
        before=f"{LISTED}$",
        writes=("data/.work/*",),
        command=f"{RUN} --part merge",
        scene=left_by(f"{RUN} --part 1/2", together(wudao, pages("part-2.json", 6, 9))),
    ),
    refused(
        "plan: damaged throughout",
        RUN.replace("--output data", "--plan"),
        scene=holding("in/part-1.json", '[{"contents": "x"}, {"contents": "y"}]'),
    ),
    refused(
        "plan: records that another corpus reads",
        f"pipelines.text --input in {TOKENIZER} --plan",
        scene=wudao,
    ),
)
