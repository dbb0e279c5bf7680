"""What shells complete, in a real bash."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from shards import completion
from shards.command import Parser
from shards.completion import SHELLS
from shards.console import OTHERS, run_entry
from shards.errors import UserError
from shards.program import COMMANDS, Entry

complete = partial(completion.complete, others=OTHERS, run=run_entry)

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
    script = "import sys; from shards.console import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", script, "completion", "bash"],
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
def test_every_shell_has_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    complete([shell], [COMMANDS["shards verify"], COMMANDS["shards prune"]])
    shown = capsys.readouterr().out
    for word in ("verify", "dry-run", "run", "completion"):
        assert word in shown
    assert Parser.seen is None


def test_commands_without_their_extra_have_no_flags(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [Entry("plot", "trainer.plot", ""), Entry("draw", "trainer.plot", "")]
    monkeypatch.setitem(sys.modules, "trainer.log", None)
    monkeypatch.delitem(sys.modules, "trainer.plot", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"trainer\.log"):
        complete(["bash"], entries)
    assert Parser.seen is None
    monkeypatch.delitem(sys.modules, "trainer.log")
    monkeypatch.setitem(sys.modules, "tqdm", None)
    complete(["bash"], entries)
    out, err = capsys.readouterr()
    assert "plot" in out
    assert err.startswith("corpusmill completion: plot, draw without flags: tqdm is not installed")


def test_other_shells_are_refused() -> None:
    with pytest.raises(UserError, match="corpusmill completion --help"):
        complete(["cmd.exe"])
