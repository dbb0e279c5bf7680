import errno
import io
import subprocess
import sys
from dataclasses import MISSING, dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from shards.__main__ import main
from shards.commands.command import (
    EXIT_BROKEN_PIPE,
    EXIT_REFUSED,
    Command,
    Invocation,
    Parser,
    exit_code,
)
from shards.commands.flags import WORD, MutuallyExclusive, option
from shards.commands.output import print_lines
from shards.errors import UserError
from tests.shards.datasets import put_dataset

COOKING = Invocation("cook", stopped="nothing is burnt")


def test_what_an_encoding_lacks_is_spelt_out(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, encoding="ascii"))
    assert exit_code(Invocation("cook"), lambda: print_lines(["é 中"]) and 0) == 0
    assert output.getvalue() == rb"\xe9 \u4e2d" + b"\n"


def test_other_errors_are_for_developers() -> None:
    with pytest.raises(ZeroDivisionError):
        exit_code(Invocation("cook"), lambda: 1 // 0)


def test_lack_of_memory_is_one_paragraph(capsys: pytest.CaptureFixture[str]) -> None:
    def fill() -> None:
        raise MemoryError("malloc of size 64 failed")

    assert exit_code(COOKING, fill) == EXIT_REFUSED
    told = "cook: there is not enough memory (malloc of size 64 failed): use a machine with more, "
    assert capsys.readouterr().err == f"{told}or raise the limit (ulimit -v); nothing is burnt\n"


def test_what_may_not_be_read_is_one_paragraph(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for verb, path in (("list", tmp_path), ("open", tmp_path / "manifest.json")):

        def read(path: Path = path) -> None:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

        assert exit_code(COOKING, read) == EXIT_REFUSED
        told = f"cook: Cannot {verb} {path}: permission denied. Check its permissions and those of"
        assert capsys.readouterr().err == f"{told} the folders above it; nothing is burnt\n"


@dataclass(frozen=True, kw_only=True)
class Cook(Command):
    """Cook a dish."""

    _HEAT = MutuallyExclusive()

    dish: str = option(MISSING, "what", flag=WORD)
    minutes: int = option(MISSING, "how long", type=int, required=True)
    heat: float | None = option(None, "degrees", type=float, exclusive=_HEAT)
    raw: bool = option(False, "none at all", exclusive=_HEAT)
    pan: str = option("iron", "which", choices=("iron", "clay"))
    side: tuple[str, ...] = option((), "what beside it", action="append", flag="--with")

    def run(self) -> int:
        """Print the dish."""
        print_lines([str(self)])
        return self.minutes


def cook(words: str) -> int:
    return Cook.parse(words.split(), "python -m kitchen cook").run()


def test_a_command_is_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert cook("soup --minutes 3 --with salt --with=bread") == 3
    made = Cook(dish="soup", minutes=3, side=("salt", "bread"))
    assert capsys.readouterr().out == f"{made}\n"
    with pytest.raises(SystemExit):
        cook("--help")
    assert "which. Default: iron." in capsys.readouterr().out


def test_old_spellings_are_told_and_values_are_no_flags() -> None:
    parser = Parser(prog="cook", foreign={"--cooking-time": "here --minutes N"})
    parser.add_argument("--minutes", type=int)
    parser.add_argument("words", nargs="*")
    assert parser.is_foreign("--cooking_time")
    with pytest.raises(UserError, match=r"unknown flag --cooking_time: here --minutes N\. cook "):
        parser.parse_args(["--cooking_time=3"])
    parsed = parser.parse_args(["--minutes", "-3", "- -", "-- salt", "--", "--pepper"])
    assert (parsed.minutes, parsed.words) == (-3, ["- -", "-- salt", "--pepper"])


COOK = """
import sys
from shards.commands.command import Invocation, exit_code

def work():
    for line in range(100_000):
        print(line)

sys.exit(exit_code(Invocation("cook"), work))
"""


def test_a_reader_that_has_seen_enough_sees_no_traceback() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", COOK],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == EXIT_BROKEN_PIPE


def test_languages_of_as_many_documents_come_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    languages = pa.array(["fr", "de", "en", "en"])
    shard = {"documents": [[1, 0]] * 4, "language": languages}
    put_dataset(tmp_path, {"g0001-ff/web/00000": shard}, pieces=[b"eos", b"a"], special={"eos": 0})
    assert main(["stats", str(tmp_path)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown if " documents (" in line] == ["en", "de", "fr"]
