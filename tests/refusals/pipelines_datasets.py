"""Outputs with a dataset, perhaps a damaged one, and datasets that cannot be appended to."""

import json
import os

from tests.refusals.refusal import LISTED, Accepted, refused
from tests.refusals.setups import (
    TOKENIZER,
    Setup,
    after_command,
    all_of,
    dataset,
    lines,
    page,
    with_file,
    wudao,
)
from tests.refusals.setups_shards import (
    ABSENT,
    all_links,
    cut,
    json_changed,
    missing,
    with_manifest,
)

RUN = f"pipelines.wudao --input in {TOKENIZER} --output data"
APPEND = f"{RUN} --append"


def pages(name: str, first: int, last: int, *, text: str = "") -> Setup:
    """Return the setup that writes these pages to an input file."""
    records = [page(number) for number in range(first, last)]
    return with_file(f"in/{name}", json.dumps(records, ensure_ascii=False) + text)


def made_with(flags: str) -> Setup:
    return after_command(f"{RUN} {flags}", wudao)


def later(path: str) -> Setup:
    """Return the setup that changes the time of a file but not its bytes."""
    return lambda folder: os.utime(folder / path, (1, 1))


new = all_of(dataset, pages("part-2.json", 6, 9))
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
"""Options that affect bytes, none of which the dataset was built with."""

SAME = "--workers 2 --max-reject-rate 0.5 --skip-unreadable --keep-segments"
"""Options that do not affect bytes."""

more = all_of(
    dataset,
    with_file("rules.py", "def none(batch): return [None] * len(batch)\n"),
    with_file("bench.txt", "one two three four five six seven eight nine ten\n"),
)

OF_RUN = {
    "made of other files: one is new": new,
    "made of other files: one is gone": all_of(new, missing("in/part-1.json")),
    "made of other files: one is longer": all_of(dataset, pages("part-1.json", 0, 7)),
    "damaged: a shard is missing": all_of(dataset, missing(EACH + "wudao/*.bin")),
    "damaged: a shard is cut": all_of(dataset, cut(EACH + "wudao/*.idx")),
    "damaged: the manifest was edited": all_of(
        dataset, json_changed("data/manifest.json", "corpus", "x")
    ),
    "inputs.json: no list": all_of(dataset, with_file("data/inputs.json", "{}")),
}

OF_APPEND = {
    "damaged: signatures are missing": all_of(new, missing(EACH + "signatures/*.arrow")),
    "inputs.json: without a time": all_of(
        new, json_changed("data/inputs.json", "0.mtime_ns", ABSENT)
    ),
    "ledger: empty": all_of(new, with_file("data/ledger.json", "{}")),
    "ledger: a list": all_of(new, with_file("data/ledger.json", "[]")),
    "ledger: of another seal": all_of(
        new, with_file("data/ledger.json", '{"number": 2, "inputs": [], "seal": 7}')
    ),
    "append: a file has another time": all_of(new, later("in/part-1.json")),
    "append: a dataset of links": all_of(new, all_links),
    "append: no signatures": all_of(new, with_manifest("generations.0.signatures", [])),
}

other_bounds = all_of(
    made_with("--quality zh=glm"),
    pages("part-2.json", 6, 9),
    with_manifest("options.quality.bounds.zh.0.bounds.min_chars", 99.0),
)
"""A dataset built by a version in which a profile had different bounds."""

processed = made_with("--part 1/1")
PROCESSED = {"what was mapped is": "json", "tokens that were mapped are": "tokens"}
"""The ending of the segment files to change, by the start of a row's name."""

ROWS = (
    refused(
        "made with other options",
        f"{RUN} {' '.join(OPTIONS)}",
        setup=more,
        output_before="a single worker reads",
    ),
    Accepted(
        name="made with the same options",
        command=f"{RUN} {SAME}",
        setup=dataset,
        message="data is complete|has all|holds",
        may_write=(),
    ),
    *(refused(name, RUN, setup=setup) for name, setup in OF_RUN.items()),
    *(refused(name, APPEND, setup=setup) for name, setup in OF_APPEND.items()),
    refused(
        "append: a profile with other bounds", f"{APPEND} --quality zh=glm", setup=other_bounds
    ),
    refused(
        "append: another corpus",
        f"pipelines.text --input in {TOKENIZER} --output data --append",
        setup=all_of(new, lines),
    ),
    refused(
        "append: changed, and nothing known of documents",
        f"{APPEND} --dedup none --allow-changed",
        setup=all_of(made_with("--dedup none"), pages("part-1.json", 0, 7)),
    ),
    refused(
        "append: another source",
        f"pipelines.wudao --input News=in {TOKENIZER} --output data --append",
        setup=all_of(
            after_command(f"pipelines.wudao --input news=in {TOKENIZER} --output data", wudao),
            pages("part-2.json", 6, 9),
        ),
    ),
    refused(
        "append: all that is new is damaged",
        APPEND,
        output_before=rf"{LISTED}.*2 documents \| 0 kept \| 2 dropped",
        may_write=("data/.work*",),
        setup=all_of(
            dataset, with_file("in/part-2.json", '[{"contents": "x"}, {"contents": "y"}]')
        ),
    ),
    refused(
        "part: merge without one part",
        output_before="a single worker reads: .* 2 files, ",
        may_write=("data/.work/*",),
        command=f"{RUN} --split-bytes 2k --part merge",  # otherwise one item has both files
        setup=after_command(
            f"{RUN} --split-bytes 2k --part 1/2", all_of(wudao, pages("part-2.json", 6, 9))
        ),
    ),
    refused(
        "plan: records that another corpus reads",
        f"pipelines.text --input in {TOKENIZER} --plan",
        setup=wudao,
    ),
    refused(
        "plan: nothing is kept",
        f"pipelines.wudao --input in {TOKENIZER} --plan --language-threshold 1",
        setup=wudao,
        output_before="6 dropped",
    ),
    *(
        refused(
            f"part: {name} cut",
            f"{RUN} --part merge",
            setup=all_of(processed, cut(f"data/.work/map/*.{ending}")),
            may_write=("data/.work/*",),
            output_before=f"{LISTED} .*data/.work/map/.* again$",
        )
        for name, ending in (
            ("what was mapped is", "json"),
            ("tokens that were mapped are", "tokens"),
        )
    ),
    refused(
        "append: no bands",
        f"{RUN} --dedup minhash --append",
        setup=all_of(
            made_with("--dedup minhash"),
            pages("part-2.json", 6, 9),
            with_manifest(
                "generations.0.signatures",
                lambda tables: [x for x in tables if "exact" in x["path"]],
            ),
        ),
    ),
)
