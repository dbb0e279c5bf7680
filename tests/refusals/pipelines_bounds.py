"""The other side of bounds: what is just not refused, beside rows that refuse the next value."""

import json
from collections.abc import Sequence
from typing import Any

from tests.refusals.pipelines_filters import WORDS, benchmark, blocked, own
from tests.refusals.pipelines_quality import cutoffs, rules, two_models
from tests.refusals.pipelines_readers import parquet, some_broken, table
from tests.refusals.pipelines_tokenizers import bert_lines, changed
from tests.refusals.refusal import Accepted, mapped, refused
from tests.refusals.scenes import LINES, TOKENIZER, Scene, holding, lines, together, wudao

TEXT = f"pipelines.text --input in {TOKENIZER} --output out"
PLAN = f"pipelines.wudao --input in {TOKENIZER} --plan"
MANY = "1" * 41


def accepted(
    name: str, command: str, scene: Scene, says: str = "documents", **more: Any
) -> Accepted:
    return Accepted(name=name, command=command, scene=scene, says=says, **more)


def planned(flags: Sequence[str], scene: Scene) -> list[Accepted]:
    """Rows of flags with which a plan is made, and nothing is written."""
    return [accepted(f"planned {x}", f"{PLAN} {x}", scene, writes=()) for x in flags]


QUALITY = (
    "--quality none",
    "--quality en=gopher,zh=glm+mine:clickbait,ja@mine:whole=gopher --threshold gopher.min_words=0"
    " --threshold gopher.max_words=off --threshold zh:glm.min_chars=1 --threshold"
    " clickbait.max_marks=0",
)
MODELS = (
    "--lid-model own.bin --classifier own.bin:ja --classifier 'zh=own.bin:en>=0' --classifier"
    " 'zh=own.bin:en<=1' --classifier 'en=other.bin:en>=0.5'",
)
FILTERS = ("--filter clean=rules:Class?least=1 --filter rules:Measured?max_chars=nan",)
"""With what else a run is planned."""

ROWS = (
    *planned(QUALITY, together(wudao, rules)),
    *planned(MODELS, together(wudao, two_models)),
    *planned(FILTERS, together(wudao, own)),
    accepted(
        "planned perplexity",
        f"{PLAN} --perplexity 'zh=k.arpa+p.model<=cutoff.csv:head'",
        together(wudao, cutoffs),
        writes=(),
        needs="kenlm",
    ),
    refused("seed of 41 figures", f"pipelines.wudao --seed {MANY}"),
    refused("wait of 10 figures", "pipelines.wudao --every 1234567890s"),
    refused("part 1 of 1001", "pipelines.wudao --part 1/1001"),
    accepted(
        "part 1 of 1000",
        f"pipelines.wudao --input in {TOKENIZER} --output out --part 1/1000",
        wudao,
        says="1/1000",
    ),
    accepted(
        "damage: 1 % of the records",
        TEXT,
        holding("in/a.jsonl", some_broken(100)),
        says="100 read = 6 kept",
    ),
    accepted(
        "damage: as much as is allowed",
        f"{TEXT} --max-reject-rate 10%",
        holding("in/a.jsonl", some_broken(10)),
        says="10 read = 6 kept",
    ),
    mapped(
        "damage: more than 9 %",
        f"{TEXT} --max-reject-rate 9%",
        scene=holding("in/a.jsonl", some_broken(10)),
        found="10 documents | 6 kept | 4 dropped",
    ),
    accepted(
        "source of 100 letters",
        f"pipelines.text --input {'n' * 100}=in {TOKENIZER} --output out --plan",
        lines,
    ),
    accepted(
        "sources apart",
        f"pipelines.text --input a=in --input b=other {TOKENIZER} --plan",
        together(lines, holding("other/b.jsonl", LINES)),
        writes=(),
    ),
    accepted(
        "benchmark: eight words",
        f"{TEXT} --decontaminate a.txt --plan",
        benchmark("a.txt", " ".join(WORDS.split()[:8])),
        writes=(),
    ),
    accepted(
        "blocklist: a host and a path",
        f"{TEXT} --provenance url=url --url-blocklist domains --plan",
        blocked("# comment\nexample.com\nexample.com/shop\n"),
        writes=(),
    ),
    accepted("parquet: with text", f"{TEXT} --plan", parquet(table(a="text", b="url")), writes=()),
    accepted(
        "vocab: all there is",
        "pipelines.wudao --tokenizer hf:vocab.txt --plan",
        bert_lines(
            "".join(f"{word}\n" for word in ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the"]),
            json.dumps({"do_lower_case": False}),
        ),
        writes=(),
    ),
    accepted(
        "json: ids with some holes",
        "pipelines.wudao --tokenizer hf:tokenizer.json --plan",
        changed(lambda description: description["model"]["vocab"].update(zz=3000)),
        writes=(),
    ),
    accepted(
        "folder with one model",
        "pipelines.wudao --tokenizer hf:. --plan",
        changed(lambda _: None),
        writes=(),
    ),
)
