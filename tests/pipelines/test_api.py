import inspect
import logging
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import pipelines
from pipelines import Built, build, estimate
from pipelines.corpus.code import code_hash
from pipelines.corpus.options import Options
from pipelines.corpus.recipe import CORPORA
from pipelines.run.command import main
from shards.errors import UserError
from tests.pipelines.runs import content, page, write_wudao

ROOT = Path(__file__).parents[2]
SCRIPT = """
print("begun", __name__)
from pipelines import build
built = build("wudao", output="out", workers=2, split_bytes=12_000)
print(len(built.dataset.documents()))
"""
NOTES = """
from pipelines.corpus import Document, Options, Reading, Recipe, always, required_text, strings

def documents(record, options):
    return (Document(required_text(record, "body")),)

RECIPE = Recipe(
    name="own", about="", pattern="*.jsonl", options=Options,
    reading=always(Reading(text_fields=("body",))), provenance=strings(), documents=documents,
)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    output = tmp_path_factory.mktemp("built") / "out"
    return build("wudao", output=output, shards=2, validation="5%", keep_dropped=True)


def test_a_call_makes_what_the_command_makes(built: Built, tmp_path: Path) -> None:
    flags = ["--output", str(tmp_path / "out"), "--shards", "2", "--validation", "5%"]
    assert main("pipelines.wudao", [*flags, "--keep-dropped"]) == 0
    assert content(built.dataset.directory) == content(tmp_path / "out")  # type: ignore[arg-type]


def test_what_a_call_returns(built: Built) -> None:
    account = built.account["wudao"]
    assert account["read"] == 531
    assert built.manifest.number == 1
    assert built.report == built.dataset.directory / "report.html"
    assert sum(built.table["records"].to_pylist()) == 531
    assert {"source": "wudao", "verdict": "dropped", "reason": "duplicate", "records": 8} in (
        built.table.to_pylist()
    )
    kept = account["kept"]
    assert f"wudao: 531 read = {kept} kept + " in str(built)
    assert f"{built.dataset!r}" in repr(built)
    assert "<td>duplicate</td><td>8</td>" in built._repr_html_()


def test_a_call_finds_the_dataset_complete_and_leaves_logs_alone(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(built.dataset.directory.parent)  # type: ignore[arg-type]
    root, beam = logging.getLogger(), logging.getLogger("apache_beam")
    monkeypatch.setattr(beam, "level", logging.INFO)
    before = [*root.handlers], root.level, logging.getLogger("corpusmill").level, beam.level
    again = build("wudao", output="out", shards=2, validation=0.05, keep_dropped=True)
    assert before == (
        [*root.handlers], root.level, logging.getLogger("corpusmill").level, beam.level,
    )  # fmt: skip
    assert again.manifest == built.manifest
    assert again.account == built.account
    assert repr(again.dataset).startswith("Dataset('out', manifest 1: ")


def test_a_dataset_grows_and_its_account_is_of_all_generations(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "input": tmp_path / "in",
        "output": tmp_path / "out",
        "tokenizer": f"sentencepiece:{ROOT / 'pipelines/sample/sample.model'}",
        "append": True,
        "languages": "all",
        "language_threshold": 0,
    }
    for number in (1, 2):
        pages = [page(100 * number + i) for i in range(number)]
        write_wudao(tmp_path / "in" / f"part-{number}.json", pages)
        grown = build("wudao", **options)
        assert grown.manifest.number == number
        assert len(grown.manifest.generations) == number
    assert grown.account["wudao"]["read"] == 3


def test_an_estimate_is_the_text_of_plan_and_its_figures(tmp_path: Path) -> None:
    estimated = estimate("wudao", output=tmp_path / "out")
    assert "wall time" in str(estimated)
    assert f"{estimated.tokens:,}" in str(estimated)
    assert estimated.documents == 513
    assert f"documents=513, tokens={estimated.tokens:,}, shards=1" in repr(estimated)
    assert estimated._repr_html_() == f"<pre>{estimated.text}</pre>".replace("'", "&#x27;")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokeniser": "x"}, "unknown flag --tokeniser: did you mean --tokenizer"),
        ({"titel": "never"}, "unknown flag --titel: did you mean --title"),
        ({"checkpointing_interval": 1}, r"goes into runner_flags=\[\"--…"),
        ({"dedup": "fuzzy"}, "--dedup fuzzy: give one of none, exact, minhash"),
        ({"validation": 0.5}, "--validation 0.5 holds out more than 5 %"),
        ({"input": "/nowhere"}, "--tokenizer is missing"),
        ({"watch": True}, "python -m pipelines.wudao --watch"),
        ({"part": "1/2"}, "that is for the command on each machine"),
        ({"filter": "__main__:no_ads"}, "filter of your own cannot be in the script or notebook"),
        ({"parallelism": "many"}, "--parallelism: 'many' is not a whole number"),
        ({"runner": "FlinkRunner", "flink_master": "localhost:1"}, "--flink_master localhost:1 do"),
    ],
)
def test_what_a_call_refuses(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message.replace("…", "")):
        build("wudao", output=tmp_path / "out", **options)


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        ("wuda", "no corpus 'wuda': did you mean wudao?"),
        ("nothing.of_that_name", "no corpus 'nothing.of_that_name': give one of wudao, pile"),
        ("__main__", "a corpus or filter of your own cannot be in the script"),
        (types.ModuleType("__main__"), r"notebook that is running \(__main__\)"),
    ],
)
def test_what_is_no_corpus(corpus: str | types.ModuleType, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        build(corpus, output=tmp_path / "out")


def test_a_corpus_of_ones_own_that_is_edited_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_corpus.py").write_text(NOTES)
    (tmp_path / "a.jsonl").write_text('{"body": "one note"}\n')
    options: dict[str, Any] = {
        "input": {"mine": tmp_path / "a.jsonl"},
        "output": tmp_path / "out",
        "tokenizer": f"sentencepiece:{ROOT / 'pipelines/sample/sample.model'}",
        "languages": ["all"],
        "language_threshold": 0.0,
    }
    try:
        assert build("own_corpus", **options).account["mine"]["kept"] == 1
        assert build(sys.modules["own_corpus"], **options).manifest.number == 1
        with (tmp_path / "own_corpus.py").open("a") as source:
            source.write("# edited\n")
        with pytest.raises(UserError, match="own_corpus was edited after this process had used"):
            build("own_corpus", **options)
    finally:
        sys.modules.pop("own_corpus", None)
        code_hash.cache_clear()


@pytest.mark.slow
def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    ran = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ran.stdout == "begun __main__\n484\n", ran.stderr


def test_the_options_are_in_signature_and_docstring() -> None:
    for call in (build, estimate):
        parameters = inspect.signature(call).parameters
        names = [*parameters]
        assert names[0] == "corpus"
        assert names[-1] == "options"
        assert {"input", "tokenizer", "dedup", "every_tokens"} < {*names}
        assert not {"plan", "watch", "until"} & {*names}
        assert parameters["shard_tokens"].default == Options().shard_tokens
        text = call.__doc__ or ""
        assert "    minhash_threshold: Lowest similarity (Jaccard, of 5-grams)" in text
        assert "Options of zhihu:\n    min_chars: " in text
        assert all(f"Options of {name}:" in text for name in CORPORA)
    assert "runner" in inspect.signature(build).parameters
    assert "runner" not in inspect.signature(estimate).parameters


def test_the_face_of_the_package() -> None:
    assert {*pipelines.__all__} < {*dir(pipelines)}
    with pytest.raises(AttributeError, match="module 'pipelines' has no attribute 'bild'"):
        pipelines.bild  # type: ignore[attr-defined]  # noqa: B018  that is what is tested
