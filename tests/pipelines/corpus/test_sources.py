"""Several corpora in one run, in every container, with everything that is off by default on."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from pipelines.corpus.sources import match_corpora
from pipelines.pile import PileOptions
from pipelines.run.build import build
from pipelines.zhidao import ZhidaoOptions
from shards import Dataset, UserError
from shards.manifest import TRAIN
from tests.pipelines.runs import content, page, small, write_wudao

ENGLISH = (
    "The {0} ferry crossed the wide river every morning with {0} crates of apples and the mail. "
    "Nobody in the village could remember a day when it had not come, in fog or in ice, and the "
    "children learned to tell the hour by its bell, which was cast in the year of the great flood."
)
QUESTION = (
    "Which of the seven wooden boats that left the harbour at dawn was the last to come home?"
)


def write_pile(path: Path, texts: Mapping[str, str]) -> Path:
    lines = [
        json.dumps({"text": text, "meta": {"pile_set_name": subset}}).encode()
        for text, subset in texts.items()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zstandard.compress(b"\n".join(lines) + b"\n"))
    return path


def write_fineweb(path: Path, texts: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "text": text,
            "id": f"<urn:uuid:{at}>",
            "dump": "CC-MAIN-2024-10",
            "url": f"https://w{at}.example/",
        }
        for at, text in enumerate(texts)
    ]
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=5)
    return path


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("inputs")
    own = [ENGLISH.format(f"number {at}") for at in range(12)]
    own[2] += f" {QUESTION}"
    subsets = ["Github", "ArXiv", "Wikipedia (en)"]
    pile = {text: subsets[at % 3] for at, text in enumerate(own[:9])}
    return {
        "zh": write_wudao(root / "zh" / "part-1.json", [page(at) for at in range(20)]).parent,
        "en": write_pile(root / "en" / "00.jsonl.zst", pile).parent,
        "web": write_fineweb(root / "web" / "000_00000.parquet", own[6:]).parent,
    }


def specs(inputs: Mapping[str, Path]) -> list[str]:
    return [f"zh={inputs['zh']}", f"en=pile:{inputs['en']}", f"web=fineweb:{inputs['web']}"]


def rows(output: Path, name: str) -> list[dict[str, Any]]:
    generations = Dataset.open(output).manifest.generations
    tables = [table for each in generations for table in getattr(each, name)]
    return [row for table in tables for row in pq.read_table(output / table.path).to_pylist()]


def test_each_source_has_its_corpus(inputs: dict[str, Path], tmp_path: Path) -> None:
    files, corpora = match_corpora("pipelines.wudao", small(tmp_path, *specs(inputs), seed=7))
    assert [(file.source, file.relative) for file in files] == [
        ("en", "00.jsonl.zst"), ("web", "000_00000.parquet"), ("zh", "part-1.json"),
    ]  # fmt: skip
    modules = {source: corpus.module for source, corpus in corpora.items()}
    assert modules == {
        "en": "pipelines.pile", "web": "pipelines.fineweb", "zh": "pipelines.wudao",
    }  # fmt: skip
    other = corpora["en"].options
    assert isinstance(other, PileOptions)
    assert (other.seed, other.recipe) == (7, "all")
    assert corpora["en"].own() == {"recipe": "all", "allow": [], "deny": [], "keep": []}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("zh={zh}", "en=nothing:{en}"), "there is no corpus 'nothing'"),
        (("zh={zh}", "en=corpus:{en}"), "there is no corpus 'corpus'"),
        (("{zh}", "en=pile:{en}"), "not all have a name"),
        (("x={zh}", "x=pile:{en}"), "two inputs are called 'x'"),
    ],
)
def test_what_does_not_fit_is_refused(
    inputs: dict[str, Path], tmp_path: Path, given: tuple[str, ...], message: str
) -> None:
    options = small(tmp_path, *(spec.format(**inputs) for spec in given))
    with pytest.raises(UserError, match=message):
        match_corpora("pipelines.wudao", options)


def test_one_run_over_three_corpora(inputs: dict[str, Path], tmp_path: Path) -> None:
    benchmark = tmp_path / "benchmark.jsonl"
    benchmark.write_text(json.dumps({"question": QUESTION}))
    options = small(
        tmp_path / "out",
        *specs(inputs),
        quality=("zh=glm", "en=gopher"),
        threshold=("gopher.min_words=20",),
        decontaminate=(str(benchmark),),
        pii="mask",
        keep_dropped=True,
    )
    made = build("pipelines.wudao", options)
    assert made.sources() == ("en", "web", "zh")
    assert {name: each["corpus"] for name, each in made.options["corpora"].items()} == {
        "en": "pile", "web": "fineweb",
    }  # fmt: skip
    account = made.generations[-1].accounting
    # Texts 6 to 8 are in both, and go in one of them.
    doubles = [account[name]["dropped"].get("duplicate", 0) for name in ("en", "web")]
    assert sum(doubles) == 3
    assert account["en"]["dropped"]["contaminated"] == 1
    assert account["en"]["groups"].keys() == {"Github", "ArXiv", "Wikipedia (en)"}
    assert sum(figures["read"] for figures in account.values()) == 20 + 9 + 6
    audit = rows(tmp_path / "out", "audit")
    assert len(audit) == 35
    words = [row["gopher.words"] for row in audit if row["language"] == "en"]
    usual = len(ENGLISH.format("number 0").split())
    assert sorted(words) == [usual] * 14 + [usual + len(QUESTION.split())]
    dropped = rows(tmp_path / "out", "dropped")
    assert len(dropped) == sum(sum(f["dropped"].values()) for f in account.values())
    texts = {row["text"] for row in dropped if row["reason"] == "duplicate"}
    assert texts == {ENGLISH.format(f"number {at}") for at in (6, 7, 8)}
    again = content(tmp_path / "out")
    build("pipelines.wudao", options)
    assert content(tmp_path / "out") == again


def test_a_blocklist_needs_addresses(inputs: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "blocked").write_text("w5.example\n")
    options = small(tmp_path, *specs(inputs), url_blocklist=(str(tmp_path / "blocked"),))
    with pytest.raises(UserError, match="documents of the input 'zh' have no column url"):
        match_corpora("pipelines.wudao", options)


def test_dropped_texts_are_not_kept_unless_asked_for(
    inputs: dict[str, Path], tmp_path: Path
) -> None:
    made = build("pipelines.wudao", small(tmp_path / "out", inputs["zh"], sample=0.5))
    assert made.generations[-1].dropped == ()
    assert not (tmp_path / "out" / made.generations[-1].name / "dropped").exists()


def test_one_question_makes_several_documents_with_prompts(tmp_path: Path) -> None:
    answers = [
        f"第{at}个回答：" + "先把水烧开，再放茶叶，等三分钟就可以喝了。" * 8 for at in range(3)
    ]
    question = {
        "title": "怎么泡茶？",
        "content": "刚买了一罐绿茶。",
        "best_answer": {"content": answers[0]},
        "other_answers": [{"content": text} for text in answers[1:]],
    }
    path = tmp_path / "questions.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(question).encode() + b"\n" + b"{broken\n"))
    shared = small(tmp_path / "out", path, max_reject_rate=0.5)
    common = {
        name: getattr(shared, name)
        for name in ("input", "output", "tokenizer", "languages", "language_threshold", "shards")
    }
    options = ZhidaoOptions(**common, validation=0.0, max_reject_rate=0.5)
    made = build("pipelines.zhidao", options)
    account = made.generations[-1].accounting["zhidao"]
    assert (account["read"], account["kept"], account["fanned_out"]) == (4, 3, 2)
    assert account["quarantined"] == {"bad-json": 1}
    dataset = Dataset.open(tmp_path / "out")
    (shard,) = dataset.documents(split=TRAIN).shards()
    prompts = shard.documents["prompt_tokens"].to_pylist()
    assert len(set(prompts)) == 1
    decoded = {dataset.vocabulary.decode(shard[row][prompts[row] : -1]) for row in range(3)}
    assert {text.lstrip() for text in decoded} == set(answers)
    heads = {dataset.vocabulary.decode(shard[row][: prompts[row]]) for row in range(3)}
    assert len(heads) == 1
    assert "怎么泡茶" in heads.pop()
    assert sorted(shard.documents["ordinal"].to_pylist()) == [0, 1, 2]
