"""What shells complete, in a real bash."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shards.completion import SHELLS, script
from shards.program import COMMANDS, Entry

COMPLETES = r"""
set -e
source "$1"
cd "$2"
function=$(complete -p corpusmill | sed -E 's/.*-F ([^ ]+).*/\1/')
while IFS= read -r line; do
  read -ra COMP_WORDS <<<"$line"
  [[ $line == *" " ]] && COMP_WORDS+=("")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line} COMPREPLY=()
  "$function" corpusmill "${COMP_WORDS[COMP_CWORD]}" "" || true
  echo "${COMPREPLY[*]}"
done
"""


def completed(script: Path, folder: Path, *lines: str) -> list[set[str]]:
    """Return what bash offers at the end of each line."""
    done = subprocess.run(
        ["bash", "-c", COMPLETES, "bash", str(script), str(folder)],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return [{*line.split()} for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_commands_flags_choices_and_files(tmp_path: Path) -> None:
    command = "import sys; from shards.console import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", command, "completion", "bash"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    path = tmp_path / "completion"
    path.write_text(done.stdout)
    (tmp_path / "wudao-dataset").mkdir()
    offers = completed(
        path,
        tmp_path,
        "corpusmill ",
        "corpusmill wu",
        "corpusmill completion ",
        "corpusmill wudao --",
        "corpusmill wudao --title ",
        "corpusmill wudao --input wu",
        "corpusmill shards ",
        "corpusmill shards inspect wu",
        "corpusmill shards export x --to ",
        "corpusmill train --sa",
        "corpusmill generate wu",
    )
    assert {"wudao", "shards", "train", "completion"} <= offers[0]
    assert offers[1] == {"wudao"}
    assert offers[2] == {*SHELLS}
    assert {"--input", "--tokenizer", "--output", "--title"} <= offers[3]
    assert offers[4] == {"always", "never", "unless-repeated"}
    assert offers[5] == {"wudao-dataset"}
    assert {"inspect", "verify", "place"} <= offers[6]
    assert offers[7] == {"wudao-dataset"}
    assert {"llm.c", "olmo"} <= offers[8]
    assert {"--save", "--save-every", "--sample-every"} <= offers[9]
    assert offers[10] == {"wudao-dataset"}


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_has_a_script(shell: str) -> None:
    made = script(shell, [COMMANDS["shards verify"], COMMANDS["completion"]])
    for word in ("verify", "run", "completion", "zsh"):
        assert word in made


def test_commands_without_their_extra_have_no_flags(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [Entry(name, "trainer.plot", "", "trainer.plot:Plot") for name in ("plot", "draw")]
    monkeypatch.delitem(sys.modules, "trainer.plot", raising=False)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.delitem(sys.modules, "trainer.log", raising=False)
    assert "plot" in script("bash", entries)
    told = "corpusmill completion: plot, draw without flags: tqdm is not installed"
    assert capsys.readouterr().err.startswith(told)
