"""A text that was taken down stays away, whatever a later crawl brings."""

from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from pipelines.report.__main__ import draw_page
from pipelines.run.append import append
from pipelines.run.build import Build, build
from shards.__main__ import main
from shards.errors import UserError
from shards.manifest import TRAIN, VALIDATION, Manifest, read_manifest
from shards.reader import Dataset
from shards.verify import verify
from tests.pipelines.runs import MODULE, page, small, write_wudao

pytestmark = pytest.mark.slow

MARKER, GROUP = "ZQXJ", "某人的信"


def words(number: int) -> str:
    """Return a text of its own for each number."""
    rng = np.random.default_rng(number)
    return "".join(map(chr, rng.integers(0x4E00, 0x9F00, 600)))


def grown(output: Path, folder: Path, **changes: Any) -> Manifest:
    return append(MODULE, small(output, folder, append=True, **changes))


def asked_page(number: int = 7) -> dict[str, Any]:
    """The page that is taken down, under an id of its own."""
    return {**page(7, f"{MARKER} {words(7)} {MARKER}"), "uniqueKey": f"{number:032x}"}


def changed(number: int, old: str, new: str) -> dict[str, Any]:
    """That page with one change to its text."""
    return {**asked_page(number), "content": asked_page()["content"].replace(old, new, 1)}


def kept_ids(output: Path) -> list[str]:
    dataset = Dataset.open(output)
    shards = [
        shard for split in (TRAIN, VALIDATION) for shard in dataset.documents(split=split).shards()
    ]
    return sorted(
        key
        for shard in shards
        for row, key in enumerate(shard.documents["id"].to_pylist())
        if row not in shard.removed
    )


def ids(*records: dict[str, Any]) -> list[str]:
    return sorted(record["uniqueKey"] for record in records)


@pytest.mark.parametrize("dedup", ["exact", "minhash"])
def test_a_later_crawl_cannot_bring_a_text_back(tmp_path: Path, dedup: str) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    pages = [page(number, words(number)) for number in range(5)]
    write_wudao(folder / "part-1.json", [*pages[:2], asked_page()])
    build(MODULE, small(output, folder, dedup=dedup))
    assert main(["remove", str(output), "--id", f"{7:032x}", "--reason", "letter"]) == 0
    near = changed(8, "急不得", "急也没用")
    write_wudao(folder / "part-2.json", [asked_page(9), near, pages[2]])
    manifest = grown(output, folder, dedup=dedup)
    assert [removal.documents.rows for removal in manifest.removals] == [1]
    dropped = {"duplicate": 1} if dedup == "exact" else {"duplicate": 1, "near-duplicate": 1}
    assert manifest.generations[1].accounting["wudao"]["dropped"] == dropped
    assert kept_ids(output) == ids(*pages[:3], *([near] if dedup == "exact" else []))
    # Erased, the text itself stays away; near copies are no longer recognized.
    assert main(["compact", str(output), "--erase"]) == 0
    write_wudao(folder / "part-3.json", [asked_page(10), {**near, "uniqueKey": "b"}, pages[3]])
    manifest = grown(output, folder, dedup=dedup)
    assert manifest.generations[1].accounting["wudao"]["dropped"]["duplicate"] >= 1
    assert f"{10:032x}" not in kept_ids(output)
    assert list(verify(Dataset.open(output))) == []


def texts_in(path: Path) -> bytes:
    """Return what a file says, uncompressed."""
    content = path.read_bytes()
    if path.suffix == ".parquet":
        content += repr(pq.read_table(path).to_pylist()).encode()
        content += repr(pq.read_metadata(path).to_dict()).encode()
    return content


def files_with(directory: Path, sought: bytes) -> list[str]:
    """Return the files of a folder that have these bytes in them, by name without number."""
    found = [path for path in directory.rglob("*") if path.is_file() and sought in texts_in(path)]
    return sorted({path.relative_to(directory).as_posix() for path in found})


@dataclass(frozen=True)
class Taken:
    """A dataset of two generations after an erasure, and what was known before it."""

    output: Path
    tokens: bytes
    """Some of the document."""
    order: bytes
    said: str
    """By the command."""


PAGES = [page(number, words(number)) for number in range(6)]


def marks_of(output: Path, keys: list[str]) -> tuple[str, bytes, bytes]:
    """Return id, some tokens and order of the one document that has one of some ids."""
    ((shard, row, key),) = [
        (shard, row, key)
        for shard in Dataset.open(output).documents().shards()
        for row, key in enumerate(shard.documents["id"].to_pylist())
        if key in keys
    ]
    order = shard.documents["order"][row].as_py()
    return key, shard[row][10:40].tobytes(), order.to_bytes(8, "little")


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Taken:
    folder, output = (tmp_path_factory.mktemp("taken") / name for name in ("in", "out"))
    spaced, near = changed(11, f" {MARKER}", f" \n {MARKER}"), changed(12, "急不得", "急也没用")
    copies = [asked_page(8), {**asked_page(9), "dataType": "别的"}]
    write_wudao(folder / "part-1.json", [*PAGES[:3], asked_page(), *copies])
    options = {"dedup": "minhash", "keep_dropped": True, "keep_segments": True}
    build(MODULE, small(output, folder, **options))
    write_wudao(folder / "part-2.json", [*PAGES[3:], asked_page(10), spaced, near])
    grown(output, folder, **options)
    first, second = (generation.name for generation in read_manifest(output).generations)
    key, tokens, order = marks_of(output, ids(asked_page(7), *copies))
    assert main(["remove", str(output), "--id", key, "--reason", "letter"]) == 0
    # What is sought afterwards is found now.
    texts = {name.rpartition("/")[0] for name in files_with(output, MARKER.encode())}
    assert texts == {"", ".work/map", f"{first}/dropped", f"{second}/dropped"}
    assert {Path(name).suffix for name in files_with(output, tokens)} == {".bin", ".tokens"}
    places = {Path(name).parent.name for name in files_with(output, order)}
    assert places >= {"wudao", "signatures", "map"}
    with redirect_stdout(StringIO()) as said:
        assert main(["compact", str(output), "--erase"]) == 0
    return Taken(output, tokens, order, said.getvalue())


@pytest.mark.parametrize("sought", ["text", "tokens", "order"])
def test_erased_bytes_are_in_no_file(taken: Taken, sought: str) -> None:
    content = {"text": MARKER.encode(), "tokens": taken.tokens, "order": taken.order}[sought]
    assert files_with(taken.output, content) == []


def test_everything_else_stays(taken: Taken) -> None:
    assert list(verify(Dataset.open(taken.output))) == []
    assert kept_ids(taken.output) == ids(*PAGES)
    manifest = Dataset.open(taken.output).manifest
    assert (len(manifest.generations), manifest.removals) == (1, ())
    assert "1 document erased; all others are in" in taken.said
    with pytest.raises(UserError, match="there is no manifest number 3"):
        Dataset.open(f"{taken.output}@3")


def test_the_account_has_the_erased(taken: Taken) -> None:
    (generation,) = Dataset.open(taken.output).manifest.generations
    account = generation.accounting["wudao"]
    assert (account["read"], account["kept"], account["erased"]) == (12, 6, 1)
    assert account["dropped"] == {"duplicate": 4, "near-duplicate": 1}
    audit = pq.read_table(taken.output / generation.audit[0].path).to_pylist()
    assert len(audit) == 11
    kept = [row["bytes"] for row in audit if row["verdict"] == "kept"]
    assert (len(kept), sum(kept)) == (6, account["bytes"]["kept"])
    assert account["groups"]["手艺"]["kept"] == {"rows": 6, "bytes": sum(kept)}
    assert account["bytes"]["erased"] > 1000


def test_what_is_left_of_the_report_can_be_drawn(taken: Taken) -> None:
    assert "report.json: without examples\nreport.html: deleted\n" in taken.said
    draw_page([str(taken.output)])
    assert files_with(taken.output, MARKER.encode()) == []
    (taken.output / "report.html").unlink()


def test_erasing_again_has_nothing_to_do(taken: Taken, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = (taken.output / "manifest.json").read_bytes()
    assert main(["compact", str(taken.output), "--erase"]) == 0
    assert "no document is removed" in capsys.readouterr().out
    assert (taken.output / "manifest.json").read_bytes() == manifest


def test_what_a_later_crawl_kept_of_an_erased_text_is_erased_again(tmp_path: Path) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    write_wudao(folder / "part-1.json", [PAGES[0], asked_page()])
    options = {"dedup": "exact", "keep_dropped": True}
    build(MODULE, small(output, folder, **options))
    assert main(["remove", str(output), "--id", f"{7:032x}", "--reason", "letter"]) == 0
    assert main(["compact", str(output), "--erase"]) == 0
    write_wudao(folder / "part-2.json", [PAGES[1], asked_page(9)])
    _, second = grown(output, folder, **options).generations
    assert f"{second.name}/dropped/wudao-00000.parquet" in files_with(output, MARKER.encode())
    assert main(["compact", str(output), "--erase"]) == 0
    assert files_with(output, MARKER.encode()) == []
    assert kept_ids(output) == ids(*PAGES[:2])
    assert list(verify(Dataset.open(output))) == []


def test_a_removal_while_a_generation_is_unfinished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    write_wudao(folder / "part-1.json", [PAGES[0], asked_page()])
    build(MODULE, small(output, folder))
    write_wudao(folder / "part-2.json", [PAGES[1]])

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Build, "_finish", killed)
        with pytest.raises(KeyboardInterrupt):
            grown(output, folder)
    assert main(["remove", str(output), "--id", f"{7:032x}", "--reason", "letter"]) == 0
    assert main(["compact", str(output), "--erase"]) == 2
    assert "names a generation that is not finished" in capsys.readouterr().err
    write_wudao(folder / "part-3.json", [PAGES[2]])
    first, second, third = grown(output, folder).generations
    inputs = [[entry.path for entry in made.inputs] for made in (first, second, third)]
    assert inputs == [["part-1.json"], ["part-2.json"], ["part-3.json"]]
    assert main(["compact", str(output), "--erase"]) == 0
    assert kept_ids(output) == ids(*PAGES[:3])


def test_a_reader_goes_on_with_what_it_has_mapped(tmp_path: Path) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    write_wudao(folder / "part-1.json", [PAGES[0], {**asked_page(), "dataType": GROUP}])
    build(MODULE, small(output, folder))
    assert main(["remove", str(output), "--id", f"{7:032x}", "--reason", "letter"]) == 0
    assert {"manifest.json", "report.json"} < set(files_with(output, GROUP.encode()))
    reader = Dataset.open(output)
    tokens = list(reader.documents())
    before = [each.tolist() for each in tokens]
    assert main(["compact", str(output), "--erase"]) == 0
    assert [each.tolist() for each in tokens] == before
    del reader, tokens
    (generation,) = read_manifest(output).generations
    assert [path.name for path in output.glob("g*")] == [generation.name]
    assert files_with(output, GROUP.encode()) == [], "nor does the name of a group tell"
