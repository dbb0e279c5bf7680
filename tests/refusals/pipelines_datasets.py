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


def other_bytes(folder: Path) -> None:
    """Other content of the same size and time."""
    path = folder / "in" / "part-1.json"
    status = path.stat()
    path.write_text(path.read_text().replace("打磨", "磨光", 1))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


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

OPTIONS = {
    "--min-chars 100": "--min-chars is 100, the dataset has 101",
    "--title always": "--title is always, the dataset has unless-repeated",
    "--title-separator -": "--title-separator is -, the dataset has ' '",
    "--seed 1": "--seed is 1, the dataset has 0",
    "--languages zh": "--languages is zh, the dataset has en,zh",
    "--language-threshold 0.6": "--language-threshold is 0.6, the dataset has 0.5",
    "--lid-chars 0": "--lid-chars is 0, the dataset has 1024",
    "--quality en=gopher+c4": "--quality is en=gopher+c4, the dataset has none",
    "--pii mask": "--pii is mask, the dataset has keep",
    "--keep-dropped": "--keep-dropped is on, the dataset has off",
    "--sample 0.5": "--sample is 0.5, the dataset has 1.0",
    "--split-bytes 1000": "--split-bytes is 1000, the dataset has 134217728",
    "--dedup none": "--dedup is none, the dataset has exact",
    "--minhash-threshold 0.8": "--minhash-threshold is 0.8, the dataset has 0.7",
    "--clusters components": "--clusters is components, the dataset has local",
    "--validation 0": "--validation is 0.0, the dataset has 0.001",
    "--shards 2": "--shards is 2, the dataset has 0",
    "--shard-tokens 1000": "--shard-tokens is 1000, the dataset has 100000000",
    "--filter rules:none": "--filter is 1. quality=rules:none, the dataset has nothing",
    "--decontaminate bench.txt": "--decontaminate is …, the dataset has nothing",
}
"""Options that decide the bytes of a dataset, which was made without them."""

SAME = "--workers 2 --max-reject-rate 0.5 --skip-unreadable --keep-segments"
"""Options that do not."""

more = together(
    dataset,
    holding("rules.py", "def none(batch): return [None] * len(batch)\n"),
    holding("bench.txt", "one two three four five six seven eight nine ten\n"),
)

ROWS = (
    refused(
        "made with other options",
        f"{RUN} {' '.join(OPTIONS)}",
        f"…/data holds a dataset made with other options: {'; '.join(sorted(OPTIONS.values()))}."
        " Choose another --output, or give --overwrite to replace it",
        scene=more,
    ),
    Accepted(
        name="made with the same options",
        command=f"{RUN} {SAME}",
        scene=dataset,
        says="data is complete|has all|holds",
        writes=(),
    ),
    refused(
        "made of other files: one is new",
        RUN,
        "…/data holds a dataset of other input: wudao/part-2.json is new (1 files differ). Give"
        " --append to add what is new, or: Choose another --output, or give --overwrite to replace"
        " it",
        scene=new,
    ),
    refused(
        "made of other files: one is gone",
        RUN,
        "…/data holds a dataset of other input: wudao/part-1.json is gone (2 files differ).…",
        scene=together(new, without("in/part-1.json")),
    ),
    refused(
        "made of other files: one is longer",
        RUN,
        "…/data holds a dataset of other input: wudao/part-1.json has changed (1 files differ).…",
        scene=together(dataset, pages("part-1.json", 0, 7)),
    ),
    refused(
        "damaged: a shard is missing",
        RUN,
        "…/data/g0001-…/wudao/00000.bin is missing: the dataset is damaged. Restore the file from"
        " a copy, or give --overwrite to build the dataset again",
        scene=together(dataset, missing(EACH + "wudao/*.bin")),
    ),
    refused(
        "damaged: a shard is cut",
        RUN,
        "…/data/g0001-…/wudao/00000.idx has 160 bytes, not 162…",
        scene=together(dataset, cut(EACH + "wudao/*.idx")),
    ),
    refused(
        "damaged: signatures are missing",
        APPEND,
        "…/data/g0001-…/signatures/exact-00000.arrow is missing…",
        scene=together(new, missing(EACH + "signatures/*.arrow")),
    ),
    refused(
        "damaged: the manifest was edited",
        RUN,
        "…/data/manifest.json was changed after it was written (its sha256 does not match):"
        " restore it from a copy, or build the dataset again.",
        scene=together(dataset, json_changed("data/manifest.json", "corpus", "x")),
    ),
    refused(
        "inputs.json: no list",
        RUN,
        "…/data/inputs.json does not hold what corpusmill writes (TypeError: it is no list):"
        " restore it from a copy, or delete it: files are then compared by their content.",
        scene=together(dataset, holding("data/inputs.json", "{}")),
    ),
    refused(
        "inputs.json: a number",
        RUN,
        "…/data/inputs.json does not hold what corpusmill writes (AttributeError: 'int' object has"
        " no attribute 'items')…",
        scene=together(dataset, holding("data/inputs.json", "[7]")),
    ),
    refused(
        "inputs.json: without a time",
        APPEND,
        "…/data/inputs.json does not hold what corpusmill writes (ValueError: file 0.mtime_ns is"
        " missing)…",
        scene=together(new, json_changed("data/inputs.json", "0.mtime_ns", GONE)),
    ),
    refused(
        "inputs.json: a number for a path",
        APPEND,
        "…/data/inputs.json does not hold what corpusmill writes (ValueError: file 0: from is no"
        " path)…",
        scene=together(new, json_changed("data/inputs.json", "0.from", 7)),
    ),
    refused(
        "ledger: empty",
        APPEND,
        "…/data/ledger.json is damaged (…/data/ledger.json.inputs is missing). It names the files"
        " of the generation that was being made. Delete it: those files count as new again, and"
        " what was mapped is kept",
        scene=together(new, holding("data/ledger.json", "{}")),
    ),
    refused(
        "ledger: of another seal",
        APPEND,
        "…/data/ledger.json is damaged (…/data/ledger.json was changed after it was written). It"
        " names the files of the generation that was being made. Delete it: those files count as"
        " new again, and what was mapped is kept",
        scene=together(new, holding("data/ledger.json", '{"number": 2, "inputs": [], "seal": 7}')),
    ),
    refused(
        "append: another corpus",
        f"pipelines.text --input in {TOKENIZER} --output data --append",
        "…/data holds a dataset of pipelines.wudao, not of pipelines.text. Choose another"
        " --output, or give --overwrite to replace it",
        scene=together(new, lines),
    ),
    refused(
        "append: a file is longer",
        APPEND,
        "files that …/data was made from are not as they were: wudao/part-1.json has 3,339 bytes"
        " and had 2,862.…",
        scene=together(new, pages("part-1.json", 0, 7)),
    ),
    refused(
        "append: a file has another time",
        APPEND,
        "files that …/data was made from are not as they were: wudao/part-1.json has another time"
        " (--rehash compares the content).…",
        scene=together(new, later("in/part-1.json")),
    ),
    refused(
        "append: two changes",
        APPEND,
        "files that …/data was made from are not as they were: wudao/part-1.json has 3,339 bytes"
        " and had 2,862 (and 1 more).…",
        scene=together(of_two, pages("part-1.json", 0, 7), without("in/part-2.json")),
    ),
    refused(
        "append: changed, and nothing known of documents",
        f"{APPEND} --dedup none --allow-changed",
        "1 files have changed since …/data was made of them, the first: part-1.json."
        " --allow-changed would add all of their records again, because a dataset made with"
        " --dedup none does not know which of them it has",
        scene=together(made_with("--dedup none"), pages("part-1.json", 0, 7)),
    ),
    refused(
        "append: a dataset of links",
        APPEND,
        "…/data/manifest.json is a link: this dataset consists of links (of a cache or an annex),"
        " which is fine for reading, but files put in their place would not be a dataset with the"
        " others. Copy it with what the links stand for, cp -rL …/data COPY, and write to the"
        " copy.",
        scene=together(new, of_links),
    ),
    refused(
        "append: no signatures",
        APPEND,
        "generation g0001-… of this dataset has no signatures, by which --dedup exact would know"
        " its documents. Make the dataset again, once, with --overwrite and all of its input;"
        " after that it can be appended to.",
        scene=together(new, sealed("generations.0.signatures", [])),
    ),
    refused(
        "append: another source",
        f"pipelines.wudao --input News=in {TOKENIZER} --output data --append",
        "the sources 'News' and 'news' differ by nothing but upper and lower case, and would be"
        " one folder on file systems that make no difference: give one of them another name",
        scene=together(
            left_by(f"pipelines.wudao --input news=in {TOKENIZER} --output data", wudao),
            pages("part-2.json", 6, 9),
        ),
    ),
    refused(
        "append: all that is new is damaged",
        APPEND,
        "the corpus wudao needs the field content: these records have contents. So nothing of the"
        " source 'wudao' can be read: all 2 records, of …/in/part-2.json, are rejected (2"
        ' missing-field). The first one, at byte 1: {"contents": "x"}. If this is another corpus,'
        " give it to its own command; python -m pipelines.text --text-field contents reads records"
        " with any fields. To go on all the same, leave this source out of --input, or give"
        " --max-reject-rate 1",
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
        says=(
            "1 of 1 splits are not mapped in …/data/.work/map: wudao/part-1.json bytes 0 to 2862."
            " Run the same command with --part 1/1, or run the parts that did not finish again"
            " (what they finished is kept). If their files are on other machines, copy those of"
            " .work/map here. Then give --part merge again"
        ),
        scene=wudao,
    ),
    refused(
        "part: merge without one part",
        before=f"{LISTED}$",
        writes=("data/.work/*",),
        command=f"{RUN} --part merge",
        says=(
            "1 of 2 splits are not mapped in …/data/.work/map: wudao/part-2.json bytes 0 to 1431."
            " Run the same command with --part 2/2, or run the parts that did not finish again"
            " (what they finished is kept). If their files are on other machines, copy those of"
            " .work/map here. Then give --part merge again"
        ),
        scene=left_by(f"{RUN} --part 1/2", together(wudao, pages("part-2.json", 6, 9))),
    ),
    refused(
        "plan: damaged throughout",
        RUN.replace("--output data", "--plan"),
        "the corpus wudao needs the field content: these records have contents. So nothing of the"
        " source 'wudao' can be read: all 2 records, of …/in/part-1.json, are rejected (2"
        ' missing-field). The first one, at byte 1: {"contents": "x"}. If this is another corpus,'
        " give it to its own command; python -m pipelines.text --text-field contents reads records"
        " with any fields. To go on all the same, leave this source out of --input, or give"
        " --max-reject-rate 1",
        scene=holding("in/part-1.json", '[{"contents": "x"}, {"contents": "y"}]'),
    ),
    refused(
        "plan: records that another corpus reads",
        f"pipelines.text --input in {TOKENIZER} --plan",
        "--text-field text: these records have content, title, dataType, id. So nothing of the"
        " source 'text' can be read: all 6 records, of …/in/part-1.json, are rejected (6"
        " missing-field). The first one, at byte 1: …. Give the field that holds the text. Did you"
        " mean --text-field content? python -m pipelines.wudao reads these records. To go on all"
        " the same, leave this source out of --input, or give --max-reject-rate 1",
        scene=wudao,
    ),
)
