import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow import parquet

from pipelines.job.command import main as run_corpus
from shards.__main__ import main
from shards.maintenance.verify import verify
from shards.manifest import SourceEntry, read_manifest, write_manifest
from shards.reader import Dataset
from tests.pipelines.runs import MODULE, write_wudao
from tests.shards.grown import FLAGS, Grown
from tests.soak.dataset import PlainDataset


def test_a_generation_without_documents(grown: Path) -> None:
    manifest = read_manifest(grown)
    first, *rest = manifest.generations
    empty = {"wudao": SourceEntry(shards=(), validation=())}
    nothing = replace(first, name="g0000-0", sources=empty, audit=(), rejects=(), dropped=())
    for others in ([first], rest):  # an empty generation and one with documents
        write_manifest(grown, replace(manifest, generations=(nothing, *others), removals=()))
        before = [one.key for one in PlainDataset(grown).stored()]
        assert main(["compact", str(grown)]) == 0
        assert {*before} == {one.key for one in PlainDataset(grown).stored()}
        assert list(verify(Dataset.open(grown))) == []
    write_manifest(grown, replace(manifest, generations=(nothing, nothing), removals=()))
    assert main(["compact", str(grown)]) == 0
    assert read_manifest(grown).generations[0].sources == empty


def test_what_could_not_be_read_of_an_erased_record_goes(
    grown: Path, original: Grown, tmp_path: Path
) -> None:
    """A file was changed, so that a removed document's record no longer has a text."""
    folder = Path(shutil.copytree(original.input, tmp_path / "in"))
    pages = json.loads((folder / "part-1.json").read_bytes())
    pages[5]["contenT"] = pages[5].pop("content")
    (folder / "part-1.json").write_text(json.dumps(pages, ensure_ascii=False))
    words = ["--input", str(folder), "--output", str(grown), "--append", "--allow-changed"]
    assert run_corpus(MODULE, [*words, *FLAGS]) == 0
    found = []
    for _ in range(2):
        plain = PlainDataset(grown)
        rows = [
            row for each in plain.manifest["generations"] for row in plain.rows(each, "rejects")
        ]
        found.append({(row["path"], row["position"]) for row in rows})
        assert main(["compact", str(grown), "--erase"]) == 0
    (gone,) = found[0] - found[1]
    assert gone[0] == "part-1.json"
    assert found[1]


@pytest.mark.parametrize("flags", [[], ["--erase"]])
def test_the_same_crawl_brings_nothing_back(
    flags: list[str], grown: Path, original: Grown, tmp_path: Path
) -> None:
    assert {*PlainDataset(grown).removed()}
    assert main(["compact", str(grown), *flags]) == 0
    assert PlainDataset(grown).removed() == set()
    before = [one.key for one in PlainDataset(grown).stored()]
    folder = tmp_path / "in"
    shutil.copytree(original.input, folder)
    (folder / "part-3.json").unlink()  # the file that the dataset has not read
    for number in (1, 2):
        shutil.copy(folder / f"part-{number}.json", folder / f"part-{number + 7}.json")
    command = ["--input", str(folder), "--output", str(grown), "--append", *FLAGS]
    assert run_corpus(MODULE, command) == 0
    assert [one.key for one in PlainDataset(grown).stored()] == before


def test_an_erased_text_that_comes_again_is_in_no_file(
    grown: Path, original: Grown, tmp_path: Path
) -> None:
    """A crawl has the erased text three times, and a text that the dataset has."""
    pages = json.loads((original.input / "part-1.json").read_bytes())
    erased, known = pages[5], pages[6]
    marker = erased["content"][:40]
    assert main(["compact", str(grown), "--erase"]) == 0
    assert [*_holders(grown, marker)] == []
    again = [{**page, "uniqueKey": f"{at}"} for at, page in enumerate((erased, erased, known))]
    again.append({**erased, "content": f"  {erased['content']}\n", "uniqueKey": "spaced"})
    folder = Path(shutil.copytree(original.input, tmp_path / "in"))
    write_wudao(folder / "part-9.json", again)
    command = ["--input", str(folder), "--output", str(grown), "--append", *FLAGS]
    assert run_corpus(MODULE, command) == 0
    assert read_manifest(grown).generations[-1].accounting["wudao"]["dropped"] == {"duplicate": 6}
    assert [*_holders(grown, marker)] == []
    assert {path.parent.name for path in _holders(grown, known["content"][:40])} >= {"dropped"}
    assert main(["compact", str(grown)]) == 0
    write_wudao(folder / "part-a.json", [{**erased, "uniqueKey": "compacted"}])
    assert run_corpus(MODULE, command) == 0
    assert read_manifest(grown).generations[-1].accounting["wudao"]["dropped"] == {"duplicate": 1}
    assert [*_holders(grown, marker)] == []


def _holders(dataset: Path, marker: str) -> Iterator[Path]:
    """Yield the files that contain a text, also inside compressed tables."""
    for path in sorted(dataset.rglob("*")):
        if path.suffix == ".parquet":
            held = str(parquet.read_table(path).to_pydict())
        else:
            held = path.read_text("utf-8", "replace") if path.is_file() else ""
        if marker in held:
            yield path
