from pathlib import Path
from typing import Any

import numpy as np

from pipelines.merge.union import write_union
from shards.tables import open_table
from tests.pipelines.made_segments import DTYPE, Doc, random_docs, write_segment


def stems(tmp_path: Path, parts: list[list[Doc]], **changes: Any) -> list[Path]:
    for at, docs in enumerate(parts):
        write_segment(tmp_path / f"s{at}", docs, relative=f"part-{at}.json", **changes)
    return [tmp_path / f"s{at}" for at in range(len(parts))]


def test_a_union_is_the_segment_of_all_rows(tmp_path: Path) -> None:
    docs = random_docs(np.random.default_rng(3), 90)
    fallen = Doc(order=77, position=90, reason="language")
    members = stems(tmp_path, [docs[:50], [fallen], docs[50:]])
    write_segment(tmp_path / "whole", [*docs, fallen])
    files = write_union(tmp_path / "u", members, dtype=DTYPE)
    assert set(files) == {"audit", "examples", "documents", "tokens", "bins", "holdout", "hashes"}
    for suffix in ("bins", "holdout", "hashes"):
        assert open_table(tmp_path / f"u.{suffix}").equals(open_table(tmp_path / f"whole.{suffix}"))
    assert (tmp_path / "u.tokens").read_bytes() == (tmp_path / "whole.tokens").read_bytes()
    for suffix, entry in files.items():
        assert entry.bytes == (tmp_path / f"u.{suffix}").stat().st_size
    for suffix in ("audit", "documents"):
        union_table, expected = (
            open_table(tmp_path / f"{name}.{suffix}") for name in ("u", "whole")
        )
        assert (
            union_table.drop_columns(["path"]).to_pylist()
            == expected.drop_columns(["path"]).to_pylist()
        )
        paths = dict(
            zip(*(union_table[name].to_pylist() for name in ("order", "path")), strict=True)
        )
        assert [paths[doc.order] for doc in docs] == ["part-0.json"] * 50 + ["part-2.json"] * 40


def test_equal_texts_stay_two_rows(tmp_path: Path) -> None:
    same = 5 << 70
    members = stems(
        tmp_path,
        [[Doc(order=9, hash=same), Doc(order=11, hash=same)], [Doc(order=7, hash=same)]],
    )
    write_union(tmp_path / "u", members, dtype=DTYPE)
    hashes = open_table(tmp_path / "u.hashes")
    assert hashes.select(["order", "row", "copies"]).to_pylist() == [
        {"order": 7, "row": 0, "copies": 1},
        {"order": 9, "row": 1, "copies": 2},
    ]


def test_rows_of_one_order_are_not_brought_together(tmp_path: Path) -> None:
    members = stems(tmp_path, [[Doc(order=5), Doc(order=6)], [Doc(order=6, reason="language")]])
    assert write_union(tmp_path / "u", members, dtype=DTYPE) == {}
    assert list(tmp_path.glob("u.*")) == []
