import uuid
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.segments import matches
from pipelines.segments.matches import matching_rows
from shards.range import EVERYTHING, Range
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


def written(path: AnyPath, keys: np.ndarray) -> np.ndarray:
    """Write a table of sorted keys and return them."""
    keys = np.sort(keys)
    write_table(path, pa.table({"hash": keys, "row": np.arange(len(keys))}))
    return keys


def check(path: AnyPath, keys: np.ndarray, values: np.ndarray, *, within: Range) -> int:
    """Check what is found of some values, and return the number of rows."""
    values = np.unique(values)
    found = matching_rows(path, "hash", values, within=within)
    wanted = np.flatnonzero(np.isin(keys, values))
    assert found["row"].to_pylist() == wanted.tolist()
    assert column(found, "hash").tolist() == keys[wanted].tolist()
    return len(wanted)


@pytest.fixture(scope="module")
def even(folder: AnyPath) -> np.ndarray:
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 2**64, NUM, np.uint64)
    return written(folder / "even", np.append(keys, keys[:500]))


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32), num=st.sampled_from([0, 1, 3, 40, 2_000, 40_000]))
def test_rows_are_found_by_few_values_and_by_many(
    folder: AnyPath, even: np.ndarray, seed: int, num: int
) -> None:
    rng = np.random.default_rng(seed)
    there, strange = rng.choice(even, num), rng.integers(0, 2**64, num, np.uint64)
    ends = np.array([even[0], even[-1], 0, 2**64 - 1], np.uint64)
    values = np.concatenate([there, strange, ends]) if num else there
    assert check(folder / "even", even, values, within=EVERYTHING) >= min(num, 2)


@pytest.mark.parametrize("piece_bytes", [1, 100_000])
@pytest.mark.parametrize("shape", ["one value", "low", "two heaps", "nothing", "few"])
def test_keys_that_are_not_even_are_found_too(
    folder: AnyPath, monkeypatch: pytest.MonkeyPatch, shape: str, piece_bytes: int
) -> None:
    monkeypatch.setattr(matches, "PIECE_BYTES", piece_bytes)
    keys = {
        "one value": np.full(20_000, 2**63, np.uint64),
        "low": np.arange(50_000, dtype=np.uint64),
        "two heaps": np.append(np.arange(20_000), np.arange(2**63, 2**63 + 20_000)),
        "nothing": np.zeros(0),
        "few": np.arange(5) * 2**60,
    }[shape].astype(np.uint64)
    path = folder / f"{shape}-{piece_bytes}"
    keys = written(path, keys)
    for value in (0, 5, 9_999, 49_999, 2**60, 2**63, 2**63 + 10_000, 2**64 - 1):
        check(path, keys, np.array([value], np.uint64), within=EVERYTHING)
    check(path, keys, np.append(keys[::3], keys[-1:]), within=EVERYTHING)
