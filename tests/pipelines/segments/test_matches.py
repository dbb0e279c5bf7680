import uuid
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from pipelines.segments import matches
from pipelines.segments.matches import matching_rows
from shards.range import FULL_RANGE
from shards.storage.remote import AnyPath, RemotePath
from shards.tables import column, write_table

NUM = 30_000


@pytest.fixture(scope="module", params=["disk", "url"])
def folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AnyPath]:
    if request.param == "disk":
        yield tmp_path_factory.mktemp("tables")
        return
    path = RemotePath(f"memory://{uuid.uuid4().hex}")
    yield path
    path.remove([*path.files()])


SHAPES = {
    "even": lambda rng: rng.choice(rng.integers(0, 2**64, NUM, np.uint64), NUM + 500),
    "one value": lambda _: np.full(20_000, 2**63, np.uint64),
    "low": lambda _: np.arange(50_000),
    "two heaps": lambda _: np.append(np.arange(20_000), np.arange(2**63, 2**63 + 20_000)),
    "nothing": lambda _: np.zeros(0),
    "few": lambda _: np.arange(5) * 2**60,
}
ENDS = (0, 5, 9_999, 49_999, 2**60, 2**63, 2**63 + 10_000, 2**64 - 1)


@pytest.mark.parametrize("piece_bytes", [1, 100_000])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_found_by_few_values_and_by_many(
    folder: AnyPath, monkeypatch: pytest.MonkeyPatch, shape: str, piece_bytes: int
) -> None:
    monkeypatch.setattr(matches, "PIECE_BYTES", piece_bytes)
    rng = np.random.default_rng(1)
    path = folder / f"{shape}-{piece_bytes}"
    keys = np.sort(SHAPES[shape](rng).astype(np.uint64))
    write_table(path, pa.table({"hash": keys, "row": np.arange(len(keys))}))
    sought = [np.array([value], np.uint64) for value in ENDS]
    sought += [np.zeros(0, np.uint64), np.append(keys[::3], keys[-1:])]
    for num in (1, 3, 40, 2_000, 40_000) if len(keys) else ():
        strange = rng.integers(0, 2**64, num, np.uint64)
        sought.append(np.concatenate([rng.choice(keys, num), strange, keys[[0, -1]]]))
    for values in map(np.unique, sought):
        found = matching_rows(path, "hash", values, within=FULL_RANGE)
        wanted = np.flatnonzero(np.isin(keys, values))
        assert found["row"].to_pylist() == wanted.tolist()
        assert column(found, "hash").tolist() == keys[wanted].tolist()
