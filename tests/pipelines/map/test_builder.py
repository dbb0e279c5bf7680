from pathlib import Path

import numpy as np
import pytest

from pipelines.map import builder
from tests.pipelines.made_segments import Doc, judged, random_docs, segment_builder, write_segment

SUFFIXES = ("tokens", "documents", "bins", "holdout", "hashes", "audit", "examples")


@pytest.mark.parametrize(("name", "limit"), [("MAX_RECORDS", 10), ("MAX_TOKENS", 20)])
def test_a_segment_is_full_after_so_many_records_or_tokens(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, limit: int
) -> None:
    monkeypatch.setattr(builder, name, limit)
    segments = segment_builder()
    assert segments.empty
    for at in range(9):  # dropped records count as well
        reason = "empty" if at % 2 and name == "MAX_RECORDS" else None
        kept, dropped = judged([Doc(order=at, reason=reason)])
        segments.add(kept, [dropped])
        assert not segments.full
    kept, dropped = judged([Doc(order=9)])
    segments.add(kept, [dropped])
    assert segments.full
    assert not segments.empty
    assert sum(tally.rows for tally in segments.close(tmp_path / "s").tallies) == 10
    assert segments.empty
    assert not segments.full


def test_the_same_documents_make_the_same_bytes_however_they_were_batched(tmp_path: Path) -> None:
    docs = random_docs(np.random.default_rng(6), 50)
    write_segment(tmp_path / "a" / "s", docs)
    segments = segment_builder()
    for doc in docs:
        kept, dropped = judged([doc])
        segments.add(kept, [dropped])
    segments.close(tmp_path / "b" / "s")
    for suffix in SUFFIXES:
        one, other = (tmp_path / folder / f"s.{suffix}" for folder in "ab")
        assert one.read_bytes() == other.read_bytes(), suffix
