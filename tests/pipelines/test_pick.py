import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import pipelines.pick
from pipelines.inputs.sources import InputFile, match_inputs
from pipelines.pick import Tally, pick_below, pick_least, write_picked
from pipelines.segments.rows import below
from shards.errors import UserError


@pytest.fixture
def files(tmp_path: Path) -> list[InputFile]:
    for part in range(3):
        records = [{"id": 100 * part + index, "content": "好" * index} for index in range(50)]
        text = json.dumps(records, ensure_ascii=part == 0, indent=part or None)
        (tmp_path / f"part-{part}.json").write_text(text, encoding="utf-8")
    return match_inputs([str(tmp_path)], pattern="part-*.json", default_name="wudao")


def keys(places: np.ndarray) -> set[tuple[int, int]]:
    return set(zip(places["file"].tolist(), places["offset"].tolist(), strict=True))


def test_shares_nest_and_have_about_their_size(files: list[InputFile]) -> None:
    file, tally = files[1], Tally()
    picks = [
        keys(pick_below(file, below(share), seed=0, tally=tally)) for share in (0, 0.1, 0.5, 1)
    ]
    assert all(small < large for small, large in itertools.pairwise(picks))
    assert [len(pick) for pick in picks[::3]] == [0, 50]
    assert 15 < len(picks[2]) < 35
    assert tally == Tally(records=200)
    assert keys(pick_below(file, below(0.5), seed=1, tally=tally)) != picks[2]


@pytest.mark.parametrize("batch", [1, 7, 1 << 16])
def test_least_are_those_of_least_hash(
    files: list[InputFile], batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipelines.pick, "_BATCH", batch)
    every = pick_least(files, 1000, seed=0, tally=Tally())
    assert len(every) == 150
    assert every.tolist() == sorted(every.tolist(), key=lambda place: place[1:3])
    for number in (1, 10, 149, 150):
        tally = Tally()
        least = pick_least(files, number, seed=0, tally=tally)
        ranked = np.sort(every, order="hash")[:number]
        assert keys(least) == keys(ranked)
        assert tally.records == 150


def test_least_agree_with_the_share_they_are(files: list[InputFile]) -> None:
    least = pick_least(files, 40, seed=3, tally=Tally())
    limit = int(least["hash"].max()) + 1
    for index, file in enumerate(files):
        share = pick_below(file, limit, seed=3, tally=Tally())
        assert share["offset"].tolist() == least["offset"][least["file"] == index].tolist()


def test_written_records_keep_their_bytes(files: list[InputFile], tmp_path: Path) -> None:
    for index, file in enumerate(files):
        raw = Path(file.path).read_bytes()
        places = pick_below(file, below(0.3), seed=0, tally=Tally())
        path = tmp_path / "out" / f"{index}.json"
        write_picked(file, places, path)
        spans = zip(places["offset"], places["length"], strict=True)
        records = [raw[offset : offset + length] for offset, length in spans]
        assert records
        assert path.read_bytes() == b"[\n" + b",\n".join(records) + b"\n]\n"


def test_damage_is_counted_and_left_out(files: list[InputFile], tmp_path: Path) -> None:
    path = Path(files[0].path)
    path.write_bytes(path.read_bytes().replace(b'"id": 7,', b'"id": 07,')[:-30])
    (file,) = match_inputs([str(path)], pattern="*", default_name="wudao")
    tally = Tally()
    places = pick_below(file, below(1), seed=0, tally=tally)
    assert tally == Tally(records=48, damages=2)
    write_picked(file, places, tmp_path / "out.json")
    ids = [record["id"] for record in json.loads((tmp_path / "out.json").read_bytes())]
    assert ids == [index for index in range(49) if index != 7]


def test_another_file_is_left_alone(files: list[InputFile], tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    few, many = (pick_below(files[0], below(f), seed=0, tally=Tally()) for f in (0.3, 0.6))
    write_picked(files[0], few, path)
    before = path.read_bytes()
    write_picked(files[0], few, path)
    with pytest.raises(UserError, match=r"out.json is there already and holds other documents"):
        write_picked(files[0], many, path)
    assert path.read_bytes() == before
    assert {entry.name for entry in tmp_path.iterdir()} == {
        "out.json", "part-0.json", "part-1.json", "part-2.json",
    }  # fmt: skip
