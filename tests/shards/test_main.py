import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from shards.__main__ import main
from shards.manifest import read_manifest, write_manifest
from shards.mixture import Mix
from shards.run import BatchSize, Run
from shards.storage.files import atomic_write
from shards.storage.lock import locked


def test_inspect_shows_a_document(pristine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(pristine), "--doc", "1", "--source", "wudao"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines() == [
        "天气 fine⟨<|endoftext|>⟩",
        "",
        "document  1 of 6 (train)",
        "shard     g0001-3f9c12ab/wudao/00000, row 1",
        "tokens    12",
        "ids       229 164 169 230 176 148 32 102 105 110 101 256",
        "offset    10",
        "prompt_tokens 0",
        "order     1",
        "language  zh",
        "bytes     11",
        "path      part-1.json",
    ]


def test_inspect_validation(pristine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(pristine), "--doc", "0", "--split", "validation"]) == 0
    assert capsys.readouterr().out.startswith("held out")


def test_inspect_shows_the_whole(pristine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(pristine)]) == 0
    out = capsys.readouterr().out
    assert "wudao, manifest 1" in out
    assert "bytes (bytes), 258 pieces, padded to 384, uint16" in out
    assert "eos=256 mask=257" in out
    rows = [line.split() for line in out.splitlines()[-3:]]
    assert [row[:-2] for row in rows] == [
        ["pile", "2", "8"],
        ["wudao", "6", "47"],
        ["wudao", "validation", "1", "9"],
    ]


def test_verify(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(dataset)]) == 0
    size = sum(entry.bytes for _, entry in read_manifest(dataset).files())
    assert f"20 files, {size:,} bytes, " in (out := capsys.readouterr().out)
    assert out.endswith("MB/s: ok\n")
    (dataset / "g0001-3f9c12ab/pile/00000.bin").unlink()
    assert main(["verify", str(dataset)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("pile/00000.bin is missing (16 bytes expected)")
    assert lines[1].endswith("MB/s: 1 problem")


def test_stats(pristine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", str(pristine)]) == 0
    lines = capsys.readouterr().out.splitlines()
    # wudao's documents have 10, 12, 2, 3, 5 and 15 tokens
    assert lines[4:8] == [
        "wudao train: 6 documents, 47 tokens",
        "  tokens a document: mean 7.8, median 5, 90th percentile 15",
        "  bytes a token: 0.87",
        "  zh                    6 documents (100.0%)",
    ]
    assert lines[-3] == "accounting of g0001-3f9c12ab"
    assert lines[-2].split() == ["wudao.dropped.short", "2"]
    assert lines[-1].split() == ["wudao.read", "1,234"]


TEMPORARY = f".tmp-{'12' * 16}-"


@pytest.fixture
def littered(dataset: Path) -> Path:
    """A dataset with what crashes, older generations and people leave."""
    for name in (
        f"g0001-3f9c12ab/wudao/{TEMPORARY}00000.bin",
        "g0001-3f9c12ab/wudao/00009.bin",
        "g0000-00000000/wudao/00000.bin",
        f".work/map/{'0' * 24}.json",
        f"{TEMPORARY}manifest.json",
        "vocabulary-00000000.arrow",
        "report.json",
        "report.html",
        "inputs.json",
        "notes.txt",
        "my-evaluation/g0000-00000000/x",
    ):
        with atomic_write(dataset / name) as handle:
            handle.write(bytes(1000))
    return dataset


def test_prune(littered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(littered.rglob("*"))
    assert main(["prune", str(littered), "--days", "0", "--dry-run"]) == 0
    assert sorted({*littered.rglob("*")} - {littered / ".lock"}) == before
    out = capsys.readouterr().out.splitlines()
    assert [line.split()[-1].removeprefix(f"{littered}/") for line in out[:-1]] == [
        f"{TEMPORARY}manifest.json",
        ".work",
        "g0000-00000000",
        f"g0001-3f9c12ab/wudao/{TEMPORARY}00000.bin",
        "g0001-3f9c12ab/wudao/00009.bin",
        "vocabulary-00000000.arrow",
    ]
    assert out[-1].split() == ["6,000", "bytes", "would", "be", "freed"]
    assert main(["prune", str(littered), "--days", "0"]) == 0
    assert capsys.readouterr().out.endswith("6,000  bytes freed\n")
    left = {path.name for path in littered.iterdir()}
    assert {"report.json", "report.html", "inputs.json", "notes.txt", "my-evaluation"} < left
    assert not left & {".work", f"{TEMPORARY}manifest.json", "g0000-00000000"}
    assert main(["verify", str(littered)]) == 0
    assert main(["prune", str(littered), "--days", "0"]) == 0
    assert "               0  bytes freed" in capsys.readouterr().out


def test_prune_neither_deletes_nor_follows_a_link(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x").write_bytes(b"precious")
    (dataset / ".work").symlink_to(tmp_path / "elsewhere")
    assert main(["prune", str(dataset)]) == 0
    assert (dataset / ".work").is_symlink()
    assert (tmp_path / "elsewhere" / "x").read_bytes() == b"precious"


def test_prune_refuses_without_a_manifest(
    littered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (littered / "manifest.json").unlink()
    before = sorted(littered.rglob("*"))
    assert main(["prune", str(littered)]) == 2
    assert "holds no dataset yet: a build in it is unfinished" in capsys.readouterr().err
    assert sorted(littered.rglob("*")) == before


def test_prune_waits_for_nobody(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with locked(dataset):
        assert main(["prune", str(dataset)]) == 2
    assert "is being written by process" in capsys.readouterr().err


def test_place(pristine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = ["--nodes", "2,1,1", "--node", "2", "--scatters", "2"]
    assert main(["place", str(pristine), *node, "--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed[0] == "node 2 of 3: scatters 1 of 2"
    names = [line.split()[-1].split("/", 1)[-1] for line in listed[1:]]
    assert [name for name in names if name.endswith(".bin")] == [
        *("pile/00000.bin", "wudao/00001.bin", "wudao/00003.bin"),
        "wudao/validation-00000.bin",
    ]
    to = str(tmp_path / "disk")
    assert main(["place", str(pristine), *node, "--to", to]) == 0
    copied = capsys.readouterr().out.splitlines()
    assert copied[:-1] == listed
    size = sum(int(line.split()[0].replace(",", "")) for line in listed[1:])
    assert copied[-1] == f"{size:>16,}  bytes copied to {to}, 0 were there; all checksums match"
    assert main(["place", str(pristine), *node, "--to", to]) == 0
    again = capsys.readouterr().out.splitlines()
    assert again[1:] == [f"{0:>16}  bytes copied to {to}, {size:,} were there; all checksums match"]


def test_place_checks(pristine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node, to = ["--nodes", "1,1", "--scatters", "2"], str(tmp_path / "disk")
    main(["place", str(pristine), *node, "--to", to])
    capsys.readouterr()
    assert main(["place", str(pristine), *node, "--check", "--to", to]) == 0
    assert main(["place", to, *node, "--check"]) == 0
    assert capsys.readouterr().out.count(f"{to}: no problems") == 2
    assert main(["place", to, *node, "--node", "1", "--check"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "node 1 of 2: scatters 1 of 2"
    assert re.search(r"wudao/00001\.arrow is missing \([\d,]+ bytes expected\)", lines[1])
    assert lines[-1] == f"{to}: 6 problems"


def test_verify_of_a_placed_copy(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "disk"
    main(["place", str(dataset), "--nodes", "1,1", "--scatters", "2", "--to", str(to)])
    capsys.readouterr()
    assert main(["verify", str(to)]) == 0
    size = sum(path.stat().st_size for path in to.rglob("*.*") if path.suffix != ".json")
    size -= sum((to / name).stat().st_size for name in (".lock", ".placed"))
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"13 files, {size:,} bytes, ")
    assert line.endswith("MB/s: ok; placed here: scatters 0 of 2, 20 files in the whole")
    # A file of another node is checked where there is one, whatever is left of its shard.
    folder = Path("g0001-3f9c12ab", "wudao")
    content = (dataset / folder / "00003.bin").read_bytes()
    (to / folder / "00003.bin").write_bytes(content)
    assert main(["verify", str(to)]) == 0
    (to / folder / "00003.bin").write_bytes(content[1:])
    (to / folder / "00002.idx").unlink()
    capsys.readouterr()
    assert main(["verify", str(to)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[0] for line in lines[:-1]] == [
        str(to / folder / "00002.idx"),
        str(to / folder / "00003.bin"),
    ]
    assert ": 2 problems; placed here: scatters 0 of 2" in lines[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], r"say where to: --to DISK, a folder on the node's own disk; or --list"),
        (["--nodes", "2,1", "--node", "2"], r"there is no node 2: the nodes are 0 to 1"),
        (["--scatters", "0"], r"0 scatters: there must be 1 or more"),
    ],
)
def test_place_refuses(
    pristine: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["place", str(pristine), *arguments]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_trace(pristine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mix = Mix(start=0, data=(f"{pristine}:wudao",))
    run = Run(mixes=(mix,), batches=(BatchSize(step=0, size=2),), length=16, steps=9)
    run.save(tmp_path / "run.json")
    by_hand = ["--data", mix.data[0], "--batch-size", "2", "--length", "16", "--steps", "9"]
    for question in (["--step", "3"], ["--document", "part-0.json:0", "--until", "3"]):
        assert main(["trace", str(tmp_path / "run.json"), *question]) in (0, 2)
        saved = capsys.readouterr()
        main(["trace", *by_hand, *question])
        assert capsys.readouterr() == saved
    assert main(["trace", *by_hand, "--step", "0"]) == 0
    heads = [line for line in capsys.readouterr().out.splitlines() if line[0] != " "]
    assert [head.split()[:2] for head in heads] == [["position", "0"], ["position", "1"]]


def test_trace_of_a_document_goes_as_far_as_it_is_told(
    pristine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shard = "g0001-3f9c12ab/wudao/00003:0"
    flags = ["trace", "--data", f"{pristine}:wudao", "--batch-size", "1", "--length", "16"]
    assert main([*flags, "--document", shard]) == 0
    once = capsys.readouterr().out.splitlines()
    assert once[0] == f"{shard} path=part-0.json"
    assert len(once) > 1
    assert main([*flags, "--document", shard, "--steps", "30"]) == 0
    more = capsys.readouterr().out.splitlines()
    assert more[: len(once)] == once
    assert main([*flags, "--document", shard, "--steps", "30", "--until", "0"]) == 0
    assert capsys.readouterr().out.splitlines() == once[:1]
    assert len(more) > len(once)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], r"give --data and --batch-size, or the file of a run's options"),
        (["nowhere.json"], r"nowhere\.json is not a file"),
        (["--data", "nowhere", "--batch-size", "2"], r"nowhere does not exist"),
    ],
)
def test_trace_refuses(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["trace", *arguments, "--step", "0"]) == 2
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize("command", ["inspect", "verify", "stats", "prune", "place"])
def test_a_person_s_mistakes_are_one_paragraph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert main([command, str(tmp_path / "nowhere")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("shards: ")
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--doc", "8"], r"no train document 8: .* has 8, counted from 0"),
        (["--doc", "-1"], r"no train document -1"),
        (["--source", "x"], r"no source 'x': give one of pile, wudao"),
    ],
)
def test_inspect_refuses(
    pristine: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["inspect", str(pristine), *arguments]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_a_numbered_dataset(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = read_manifest(dataset)
    (generation,) = manifest.generations
    more = replace(generation, number=2, name="g0002-0", sources={})
    write_manifest(dataset, replace(manifest, number=2, generations=(generation, more)))
    assert main(["inspect", f"{dataset}@1"]) == 0
    assert "manifest 1\n" in capsys.readouterr().out
    assert main(["inspect", str(dataset)]) == 0
    lines = [line.split()[:3] for line in capsys.readouterr().out.splitlines()]
    assert ["2", "g0002-0", "2"] in lines


def test_a_reader_that_has_seen_enough(pristine: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "shards", "inspect", str(pristine)]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_the_manifest_is_for_people_too(pristine: Path) -> None:
    value = json.loads((pristine / "manifest.json").read_bytes())
    assert value["generations"][0]["sources"]["pile"]["shards"][0]["documents"] == 2
