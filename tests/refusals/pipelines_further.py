"""Refusals of files edited, damaged or replaced between two commands, and of workers that die."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from tests.golden.corpus_languages import own_labels
from tests.refusals.pipelines_datasets import RUN, pages
from tests.refusals.pipelines_own import own, with_a_line
from tests.refusals.pipelines_quality import rules
from tests.refusals.refusal import LISTED, Refusal, mapped, opened, raised, refused
from tests.refusals.scenes import (
    TOKENIZER,
    Scene,
    holding,
    left_by,
    lines,
    together,
    wudao,
)
from tests.refusals.scenes_shards import consistent, cut, missing, sealed

TEXT = f"pipelines.text --input in {TOKENIZER} --output out"
MADE = TEXT.replace("--output out", "--output data")
judged = left_by(f"{MADE} --quality zh=mine:clickbait+glm", rules)
mapped_only = left_by(f"{RUN} --part 1/1", wudao)
near = left_by(f"{RUN} --dedup minhash", wudao)


def other_metric(content: bytes) -> bytes:
    """An audit table whose texts were longer."""
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


def merging(name: str, command: str, *, scene: Scene) -> Refusal:
    """Return the row of a merge that does not take what was mapped."""
    return refused(
        name,
        command,
        scene=scene,
        writes=("data/.work/*",),
        before=f"{LISTED} .*data/.work/map/.* again$",
    )


DIES = "import os\n\n\ndef dies(batch):\n    os._exit(3)\n"

RETHRESHOLD = {
    "rethreshold: a profile was edited": together(judged, with_a_line("mine.py")),
    "rethreshold: a profile is gone": together(judged, missing("mine.py")),
    "rethreshold: other metrics": together(judged, consistent(AUDIT, other_metric)),
    "rethreshold: the audit table is none": together(
        judged, consistent(AUDIT, lambda content: content[:-9])
    ),
}

ROWS = (
    *(
        refused(name, "pipelines.rethreshold data", scene=scene)
        for name, scene in RETHRESHOLD.items()
    ),
    refused(
        "two inputs of one name, each of its corpus",
        f"pipelines.text {TOKENIZER} --input a=in --input a=wudao:w",
        scene=together(lines, holding("w/part-1.json", "[]")),
    ),
    refused(
        "cp_wudao: a place that is not known",
        "pipelines.cp_wudao 1 --input 'a/*/../x/part-*.json'",
        scene=together(holding("a/b/c"), holding("a/x/part-1.json", "[]")),
    ),
    opened(
        "languages of a model of other labels",
        "pipelines.wudao --output out --lid-model glot.ftz",
        scene=own_labels,
    ),
    merging(
        "part: what was mapped is cut",
        f"{RUN} --part merge",
        scene=together(mapped_only, cut("data/.work/map/*.json")),
    ),
    merging(
        "part: tokens that were mapped are cut",
        f"{RUN} --part merge",
        scene=together(mapped_only, cut("data/.work/map/*.tokens")),
    ),
    refused(
        "append: no bands",
        f"{RUN} --dedup minhash --append",
        scene=together(
            near,
            pages("part-2.json", 6, 9),
            sealed(
                "generations.0.signatures",
                lambda tables: [x for x in tables if "exact" in x["path"]],
            ),
        ),
    ),
    refused("word that is no UTF-8", f"{TEXT} 'in/\udcff'", scene=lines),
    opened(
        "tiktoken that cannot be fetched",
        "pipelines.wudao --output out --tokenizer tiktoken:gpt2",
        env={
            "https_proxy": "http://127.0.0.1:1",
            "HTTPS_PROXY": "http://127.0.0.1:1",
            "TIKTOKEN_CACHE_DIR": "",
        },
    ),
    opened(
        "perplexity of one file",
        "pipelines.wudao --output out --perplexity 'zh=k<=9'",
        scene=holding("k"),
        needs="kenlm",
    ),
    opened(
        "perplexity with a folder of cutoffs",
        "pipelines.wudao --output out --perplexity 'zh=k+k<=in:head'",
        scene=together(lines, holding("k")),
        needs="kenlm",
    ),
    refused(
        "train_tokenizer: no text",
        "pipelines.train_tokenizer --corpus text --input in --output a.model --vocab-size 300",
        scene=holding("in/a.jsonl", '{"text": ""}\n'),
        before="^pipelines.train_tokenizer: reading ",
    ),
    mapped(
        "filter that ends its process",
        f"{TEXT} --workers 1 --filter rules:dies",
        scene=together(lines, holding("rules.py", DIES)),
    ),
    raised(
        "build of a corpus that is edited meanwhile",
        TWICE,
        scene=own("spec()"),
        writes=("*",),
        before="merge 100 %",
    ),
)
