from typing import Any

from pipelines.readers.record import WHOLE_BYTES, Damage, Reason, Record
from pipelines.segments.rows import REJECTS


def test_a_record_knows_its_size_and_head() -> None:
    raw = b'{"text":"' + b"x" * 2_000_000 + b'"}'
    record = Record(7, len(raw), {"text": "x" * 2_000_000}, raw)
    assert (record.size, record.head) == (len(raw), raw[:WHOLE_BYTES])


def test_a_row_has_no_bytes_of_its_own() -> None:
    row = Record(3, 1, {"text": "x" * 2_000_000, "n": float("nan")}, b"")
    assert row.size == 2_000_000
    assert row.head == (b'{"text":"' + b"x" * 2_000_000)[:WHOLE_BYTES]


def test_a_row_that_json_cannot_hold_has_a_head_of_its_texts() -> None:
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    assert Record(3, 1, {"deep": deep, "text": "x", "n": 1}, b"").head == b'{"text":"x"}'


def test_damage_keeps_its_first_bytes() -> None:
    damage = Damage(0, 9, "bad-json", b"raw")
    assert (damage.head, damage.size) == (b"raw", 3)


def test_every_reason_quarantines() -> None:
    reasons = set(Reason.__args__)  # type: ignore[attr-defined]  # what a Literal allows
    assert reasons <= REJECTS
    assert "bad-archive" in reasons
