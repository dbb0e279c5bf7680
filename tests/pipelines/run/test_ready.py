import re
from pathlib import Path
from typing import Any

import pytest

from pipelines.run import build
from pipelines.run.ready import check_ready
from pipelines.wudao import RECIPE, WudaoOptions
from shards.errors import UserError
from tests.pipelines.runs import page, small, write_wudao

MODEL = RECIPE.sample_tokenizer


def ready(output: Path, *, flags: tuple[str, ...] = (), **changes: Any) -> None:
    options = WudaoOptions(**{"tokenizer": MODEL, "output": output, **changes})
    check_ready(options, corpus="wudao", flags=flags)


def test_a_run_that_can_begin_leaves_nothing_behind(tmp_path: Path) -> None:
    ready(tmp_path / "new" / "out")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"tokenizer": "sentencepiece:no.model"}, "there is no file no.model"),
        ({"tokenizer": "cog.model"}, "write sentencepiece:cog.model"),
        (
            {"lid_model": "no.bin"},
            "--lid-model names fastText's lid.176.bin or .ftz, from https://",
        ),
        (
            {"decontaminate": ("no.txt",)},
            "--decontaminate names texts of benchmarks: no.txt does not exist",
        ),
        (
            {"url_blocklist": ("no.txt",)},
            "--url-blocklist names a list of domains: no.txt does not exist",
        ),
        ({"classifier": ("zh=no.bin:hq>=0.5",)}, "LABEL>=SCORE: no.bin does not exist"),
        ({"perplexity": ("zh=no.arpa+no.model<=9",)}, "<=CUTOFFS.csv:PART: no.arpa does not exist"),
    ],
)
def test_what_is_missing_is_told(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=re.escape(told)):
        ready(tmp_path / "out", **changes)


def test_lists_behind_urls_and_globs_are_left_to_their_readers(tmp_path: Path) -> None:
    ready(tmp_path, url_blocklist=("https://lists.example/x.txt", "lists/*.txt"))


def test_an_output_that_is_or_lies_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for output in (tmp_path / "file", tmp_path / "file/below/it"):
        with pytest.raises(UserError, match=r"cannot be made: .*/file is a file, where a folder"):
            ready(output)


def test_an_output_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(UserError, match=r"no space left on the disk that holds .*out"):
        ready(tmp_path / "out")


@pytest.mark.slow
def test_an_engine_that_does_not_answer(tmp_path: Path) -> None:
    flags = ("--runner=FlinkRunner", "--flink_master=localhost:1")
    with pytest.raises(UserError, match=r"--flink_master localhost:1 does not answer"):
        ready(tmp_path / "out", flags=flags)


def test_nothing_is_listed_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(build, "list_corpora", listed)
    options = WudaoOptions(tokenizer="sentencepiece:no.model", output=tmp_path, input=("s3://b/",))
    with pytest.raises(UserError, match=r"no file no\.model"):
        build.build("pipelines.wudao", options)


def test_the_dataset_of_another_corpus_is_told_before_the_input_is_looked_for(
    tmp_path: Path,
) -> None:
    path = write_wudao(tmp_path / "part-1.json", map(page, range(3)))
    build.build("pipelines.wudao", small(tmp_path / "out", path))
    gone = small(tmp_path / "out", tmp_path / "gone")
    with pytest.raises(UserError, match=r"a dataset of pipelines.wudao, not of pipelines.text"):
        build.build("pipelines.text", gone)
