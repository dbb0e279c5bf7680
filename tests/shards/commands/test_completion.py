"""Tests the completion in a real bash."""

import subprocess
import sys
from pathlib import Path

import pytest

from shards.commands.completion import SHELLS, script
from shards.commands.table import Entry
from tests.python import python

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


OFFERS = {
    "corpusmill ": {"wudao", "shards", "train", "completion"},
    "corpusmill wu": {"wudao"},
    "corpusmill completion ": {*SHELLS},
    "corpusmill wudao --": {"--input", "--tokenizer", "--output", "--title"},
    "corpusmill wudao --title ": {"always", "never", "unless-repeated"},
    "corpusmill wudao --input wu": {"wudao-dataset"},
    "corpusmill shards ": {"inspect", "verify", "place"},
    "corpusmill shards inspect wu": {"wudao-dataset"},
    "corpusmill shards export x --to ": {"llm.c", "olmo"},
    "corpusmill train --sample": {"--sample-every"},
    "corpusmill generate wu": {"wudao-dataset"},
}
"""The minimum words to offer at the end of a line; at the end of a word, exactly the words to
offer."""


def completed(script: Path, folder: Path, *lines: str) -> list[set[str]]:
    """Return the words that bash offers at the end of each line."""
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
    done = python("-c", command, "completion", "bash", at=tmp_path)
    assert done.stderr == ""
    path = tmp_path / "completion"
    path.write_text(done.stdout)
    (tmp_path / "wudao-dataset").mkdir()
    for line, offered in zip(OFFERS, completed(path, tmp_path, *OFFERS), strict=True):
        assert OFFERS[line] <= offered, line
        assert offered == OFFERS[line] or line[-1] in " -e", line


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
