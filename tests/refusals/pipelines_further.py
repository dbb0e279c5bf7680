"""Files that are edited, damaged or replaced between two commands, and workers that die."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from tests.golden.corpus_languages import own_labels
from tests.refusals.pipelines_datasets import RUN, pages
from tests.refusals.pipelines_own import own, with_a_line
from tests.refusals.pipelines_quality import rules
from tests.refusals.refusal import LISTED, Refusal, after_reading, at_start, in_python, refused
from tests.refusals.setups import (
    TOKENIZER,
    Setup,
    after_command,
    all_of,
    lines,
    with_file,
    wudao,
)
from tests.refusals.setups_shards import cut, missing, with_checksum, with_manifest

TEXT = f"pipelines.text --input in {TOKENIZER} --output out"
MADE = TEXT.replace("--output out", "--output data")
judged = after_command(f"{MADE} --quality zh=mine:clickbait+glm", rules)
mapped_only = after_command(f"{RUN} --part 1/1", wudao)
near = after_command(f"{RUN} --dedup minhash", wudao)


def other_metric(content: bytes) -> bytes:
    """Return an audit table with another metric of all texts."""
    audit = pq.read_table(io.BytesIO(content))
    index = audit.schema.get_field_index("glm.chars")
    field = audit.schema.field(index)
    written = io.BytesIO()
    values = pa.array([1.0] * len(audit), field.type)
    pq.write_table(audit.set_column(index, field, values), written)
    return written.getvalue()


AUDIT = "data/g0001-*/audit/*.parquet"
TWICE = f"""
import pipelines
def build():
    pipelines.build(
        "notes", input="in", output="out", languages="all", language_threshold=0,
        tokenizer={TOKENIZER.split()[1]!r},
    )
build()
with open("notes.py", "a") as module:
    module.write("# edited")
build()
"""


def merging(name: str, command: str, *, setup: Setup) -> Refusal:
    """Return the row of a merge that cannot use the processed segments."""
    return refused(
        name,
        command,
        setup=setup,
        may_write=("data/.work/*",),
        output_before=f"{LISTED} .*data/.work/map/.* again$",
    )


DIES = "import os\n\n\ndef dies(batch):\n    os._exit(3)\n"

RETHRESHOLD = {
    "rethreshold: a profile was edited": all_of(judged, with_a_line("mine.py")),
    "rethreshold: a profile is gone": all_of(judged, missing("mine.py")),
    "rethreshold: other metrics": all_of(judged, with_checksum(AUDIT, other_metric)),
    "rethreshold: the audit table is none": all_of(
        judged, with_checksum(AUDIT, lambda content: content[:-9])
    ),
}

ROWS = (
    *(
        refused(name, "pipelines.rethreshold data", setup=setup)
        for name, setup in RETHRESHOLD.items()
    ),
    refused(
        "two inputs of one name, each of its corpus",
        f"pipelines.text {TOKENIZER} --input a=in --input a=wudao:w",
        setup=all_of(lines, with_file("w/part-1.json", "[]")),
    ),
    refused(
        "cp_wudao: a place that is not known",
        "pipelines.cp_wudao 1 --input 'a/*/../x/part-*.json'",
        setup=all_of(with_file("a/b/c"), with_file("a/x/part-1.json", "[]")),
    ),
    at_start(
        "languages of a model of other labels",
        "pipelines.wudao --output out --lid-model glot.ftz",
        setup=own_labels,
    ),
    merging(
        "part: what was mapped is cut",
        f"{RUN} --part merge",
        setup=all_of(mapped_only, cut("data/.work/map/*.json")),
    ),
    merging(
        "part: tokens that were mapped are cut",
        f"{RUN} --part merge",
        setup=all_of(mapped_only, cut("data/.work/map/*.tokens")),
    ),
    refused(
        "append: no bands",
        f"{RUN} --dedup minhash --append",
        setup=all_of(
            near,
            pages("part-2.json", 6, 9),
            with_manifest(
                "generations.0.signatures",
                lambda tables: [x for x in tables if "exact" in x["path"]],
            ),
        ),
    ),
    refused("word that is no UTF-8", f"{TEXT} 'in/\udcff'", setup=lines),
    at_start(
        "tiktoken that cannot be fetched",
        "pipelines.wudao --output out --tokenizer tiktoken:gpt2",
        env={
            "https_proxy": "http://127.0.0.1:1",
            "HTTPS_PROXY": "http://127.0.0.1:1",
            "TIKTOKEN_CACHE_DIR": "",
        },
    ),
    at_start(
        "perplexity of one file",
        "pipelines.wudao --output out --perplexity 'zh=k<=9'",
        setup=with_file("k"),
        requires="kenlm",
    ),
    at_start(
        "perplexity with a folder of cutoffs",
        "pipelines.wudao --output out --perplexity 'zh=k+k<=in:head'",
        setup=all_of(lines, with_file("k")),
        requires="kenlm",
    ),
    refused(
        "train_tokenizer: no text",
        "pipelines.train_tokenizer --corpus text --input in --output a.model --vocab-size 300",
        setup=with_file("in/a.jsonl", '{"text": ""}\n'),
        output_before="^pipelines.train_tokenizer: reading ",
    ),
    after_reading(
        "filter that ends its process",
        f"{TEXT} --workers 1 --filter rules:dies",
        setup=all_of(lines, with_file("rules.py", DIES)),
    ),
    in_python(
        "build of a corpus that is edited meanwhile",
        TWICE,
        setup=own("spec()"),
        may_write=("*",),
        output_before="merge 100 %",
    ),
)
