import inspect
import logging
import subprocess
import sys
from pathlib import Path

import pytest

import pipelines
from pipelines import Built, build, estimate
from pipelines.corpus.options import Options
from pipelines.corpus.recipe import CORPORA

ROOT = Path(__file__).parents[2]
SCRIPT = """
print("begun", __name__)
from pipelines import build
built = build("wudao", output="out", workers=2, split_bytes=12_000)
print(len(built.dataset.documents()))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    output = tmp_path_factory.mktemp("built") / "out"
    return build("wudao", output=output, shards=2, validation="5%", keep_dropped=True)


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
    assert {*pipelines.__all__} < {*dir(pipelines)}
    for call in (build, estimate):
        parameters = inspect.signature(call).parameters
        names = [*parameters]
        assert names[0] == "corpus"
        assert names[-1] == "options"
        assert {"input", "tokenizer", "dedup", "append"} < {*names}
        assert not {"plan", "watch", "until"} & {*names}
        assert parameters["shard_tokens"].default == Options().shard_tokens
        text = call.__doc__ or ""
        assert "    minhash_threshold: Lowest similarity (Jaccard, of 5-grams)" in text
        assert "Options of zhihu:\n    min_chars: " in text
        assert all(f"Options of {name}:" in text for name in CORPORA)
    assert "runner" in inspect.signature(build).parameters
    assert "runner" not in inspect.signature(estimate).parameters
