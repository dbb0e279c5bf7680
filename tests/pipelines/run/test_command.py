import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines import fineweb, wudao
from pipelines.corpus.recipe import SAMPLE
from pipelines.run.command import completed, main
from shards.errors import UserError


def test_what_is_not_given_is_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = completed(wudao.WudaoOptions(), wudao.RECIPE)
    assert options.input == (str(SAMPLE),)
    assert options.tokenizer == f"sentencepiece:{SAMPLE / 'sample.model'}"
    assert options.output == tmp_path / "build" / "wudao"
    given = replace(options, input=("x",), tokenizer="tiktoken:gpt2", output=Path("y"))
    assert completed(given, wudao.RECIPE) == replace(given, output=tmp_path / "y")


def test_what_cannot_be_filled_in_is_asked_for() -> None:
    with pytest.raises(UserError, match=r"--input is missing: name the files of fineweb"):
        completed(fineweb.FinewebOptions(), fineweb.RECIPE)
    options = wudao.WudaoOptions(input=("there",))
    with pytest.raises(UserError, match=r"--tokenizer is missing: .*--input there --vocab-size"):
        completed(options, wudao.RECIPE)


def test_the_plan_is_printed_and_nothing_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    assert main("pipelines.wudao", ["--plan", "--part", "1/2", "--output", str(output)]) == 2
    assert "--plan estimates whole runs: leave --part out" in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.slow
def test_help_loads_neither_beam_nor_models() -> None:
    script = """
import subprocess
import sys
from pipelines.run.command import main
try:
    main("pipelines.wudao", ["--help"])
except SystemExit:
    loaded = {"apache_beam", "sentencepiece", "jinja2", "torch"} & {*sys.modules}
    sys.exit(repr(loaded) if loaded else 0)
"""
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "--shard-tokens" in done.stdout


@pytest.mark.slow
def test_a_run_loads_neither_beam_nor_pandas_unless_it_is_asked_to(tmp_path: Path) -> None:
    script = """
import sys
from pipelines.run.command import main
flags = sys.argv[1:]
code = main("pipelines.wudao", flags)
sys.exit(code or repr({"apache_beam", "pandas", "numba"} & {*sys.modules}))
"""
    root = Path(__file__).parents[3]
    told = [
        subprocess.run(
            [sys.executable, "-c", script, "--output", str(tmp_path / name), *flags],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        ).stderr.splitlines()[-1]
        for name, flags in {"called": [], "beam": ["--runner=DirectRunner"]}.items()
    ]
    assert told[0] == "set()"
    assert "apache_beam" in told[1]
