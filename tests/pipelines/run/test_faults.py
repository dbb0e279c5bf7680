"""Faults of inputs and of intermediate files: what becomes of a run (docs/evidence.md).

Every test ends in the bytes of an undisturbed run, or in one paragraph and no dataset.
"""

import gzip
import logging
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.run.build import build
from shards import Dataset, UserError
from shards.verify import verify
from tests.pipelines.runs import MODULE, many_splits, page, shipped, small, write_wudao

# --- intermediate files


def flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 4
    path.write_bytes(raw)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def empty(path: Path) -> None:
    path.write_bytes(b"")


HARMS = {"flip": flip, "cut": cut, "empty": empty, "remove": Path.unlink}

LEFT = [
    *(
        f".work/map/*.{suffix}"
        for suffix in (
            *("tokens", "documents", "bins", "holdout", "hashes", "slots", "bands"),
            *("audit", "examples", "rejects", "texts", "json"),
        )
    ),
    *(".work/dedup/*.drops", ".work/dedup/*.json"),
    *(".work/drops/*.drops", ".work/drops/*.json", ".work/merge/*.json"),
    *("g*/wudao/*.bin", "g*/wudao/*.idx", "g*/wudao/*.arrow"),
    *("g*/audit/*", "g*/signatures/*", "g*/rejects/*", "g*/dropped/*", ".work/slots/*.json"),
]
"""Every kind of file that a run leaves before its manifest."""


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run leaves that was killed when it was about to write its manifest."""
    output = tmp_path_factory.mktemp("left") / "dataset"
    build(MODULE, many_splits(output, dedup="minhash", keep_dropped=True, keep_segments=True))
    return output


def task_of(path: Path) -> str:
    """The name of the task that left a file of intermediate results, or the number of its shard."""
    found = re.match(r"[0-9a-f]{24}", path.name) or re.search(r"\d{5}(?=\.)", path.name)
    assert found, path
    return found[0]


@pytest.mark.slow
@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("part", range(4))
def test_what_was_harmed_between_two_runs_is_told_and_made_again(
    left: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, harm: str, part: int
) -> None:
    output = tmp_path / "out"
    shutil.copytree(left, output)
    (output / "manifest.json").unlink()
    kinds = [sorted(output.glob(pattern)) for pattern in LEFT[part::4]]
    victims: list[Path] = []
    for at, kind in enumerate(sorted(kinds, key=len)):  # of different tasks: each is told once
        told = {task_of(path) for path in victims}
        free = [path for path in kind if task_of(path) not in told]
        victims.append(free[at % len(free)])
        HARMS[harm](victims[-1])
    with caplog.at_level(logging.WARNING, "corpusmill"):
        build(MODULE, many_splits(output, dedup="minhash", keep_dropped=True, keep_segments=True))
    assert shipped(output) == shipped(left)
    assert list(verify(Dataset.open(output))) == []
    for victim in victims:
        if victim.suffix != ".json" or harm != "remove":
            assert str(victim) in caplog.text


# --- inputs that change while a run goes on


def vanish(path: Path) -> None:
    path.unlink()


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def become_a_dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def be_written_again(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    os.utime(path)


CHANGES = {
    vanish: r"Cannot read the input {path}: No such file or directory\. Check the file",
    become_a_folder: r"Cannot read the input {path}: Is a directory\. Check the file",
    become_a_dangling_link: r"Cannot read the input {path}: No such file or directory\. Check",
    grow: r"The input {path} has \d+ bytes and had \d+ when the run began: it is being changed\.",
    be_written_again: r"The input {path} was written again after the run began: it is being",
}


@pytest.fixture
def corpus(tmp_path: Path) -> Callable[[str], list[Path]]:
    """Writes the same pages into two files of a form."""

    def write(form: str) -> list[Path]:
        paths = [tmp_path / "in" / f"part-{number}.{form}" for number in (1, 2)]
        for number, path in enumerate(paths):
            records = [page(100 * number + at) for at in range(40)]
            write_wudao(path.with_suffix(""), records)
            raw = path.with_suffix("").read_bytes()
            path.with_suffix("").unlink()
            path.write_bytes(gzip.compress(raw, mtime=0) if form.endswith("gz") else raw)
        return paths

    return write


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "json.gz"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_an_input_that_changes_between_plan_and_read_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    corpus: Callable[[str], list[Path]],
    change: Callable[[Path], None],
    form: str,
) -> None:
    first, second = corpus(form)
    before, times = second.read_bytes(), second.stat()
    options = small(tmp_path / "out", first.parent / f"*.{form}", split_bytes=1 << 20)
    rename = Path.replace

    def replace(self: Path, target: Path) -> Path:
        """The first file's record is about to get its name: the second is opened next."""
        if target.parent.name == "map" and target.suffix == ".json":
            monkeypatch.setattr(Path, "replace", rename)
            change(second)
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(UserError, match=CHANGES[change].format(path=re.escape(str(second)))):
        build(MODULE, options)
    assert not (tmp_path / "out" / "manifest.json").exists()
    if second.is_dir():
        second.rmdir()
    second.unlink(missing_ok=True)
    second.write_bytes(before)
    os.utime(second, ns=(times.st_atime_ns, times.st_mtime_ns))
    made = build(MODULE, options)
    account = made.generations[0].accounting["wudao"]
    assert account["read"] == account["kept"] == 80
    calm = small(tmp_path / "calm", first.parent / f"*.{form}", split_bytes=1 << 20)
    build(MODULE, calm)
    assert shipped(tmp_path / "out") == shipped(tmp_path / "calm")
