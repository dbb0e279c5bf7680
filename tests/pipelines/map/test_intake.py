from collections.abc import Iterator

import pytest

from pipelines.map import intake
from pipelines.map.intake import group_records
from pipelines.readers.record import Record


def test_records_are_grouped_by_number_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "BATCH_RECORDS", 3)
    monkeypatch.setattr(intake, "BATCH_BYTES", 100)

    def sizes(*lengths: int) -> list[list[int]]:
        def items() -> Iterator[Record]:
            for length in lengths:
                yield Record(0, length, {}, b"x" * length)

        return [[item.size for item in batch] for batch in group_records(items())]

    assert sizes() == []
    assert sizes(1, 2, 3, 4) == [[1, 2, 3], [4]]
    assert sizes(99, 50, 1) == [[99, 50], [1]]
    assert sizes(100, 1, 2) == [[100], [1, 2]]
