from pathlib import Path

import pyarrow as pa

from pipelines.corpus.recipe import SAMPLE
from pipelines.inputs.files import match_inputs
from pipelines.inputs.split import split_file
from pipelines.readers.reading import ALL_RECORDS, ReaderFactory, Reading, open_reader
from pipelines.readers.rejects import PLACES, WHOLE, Rejects
from pipelines.segments.rows import Verdict

READING = Reading(format="json", text_fields=("content",), max_record_bytes=1 << 20)


def test_all_records_or_those_that_were_rejected(tmp_path: Path) -> None:
    (file, *_) = match_inputs([str(SAMPLE)], pattern="part-*.json", default_name="wudao")
    (split,) = split_file(file, file.bytes)
    records = [(item.offset, item.length) for item in open_reader(split, READING)]
    rejects = Rejects(folder=tmp_path, dataset="d", reasons=(), max_record_bytes=1 << 10)
    places = [[records[3][0]], [records[3][1]], [WHOLE], ["nul"]]
    rejects.write(pa.table(places, schema=PLACES), [split], crc32c=[7])

    def read(factory: ReaderFactory) -> list[tuple[int, int]]:
        return [(item.offset, item.length) for item in factory.reader(split, READING)]

    assert read(ALL_RECORDS) == records
    assert read(rejects) == [records[3]]
    assert ALL_RECORDS.reading(READING) == READING
    assert rejects.reading(READING).max_record_bytes == 1 << 10
    assert ALL_RECORDS.facts() == {}
    assert rejects.facts()["replay"] == "d"
    positions = pa.array([offset for offset, _ in records[:5]], pa.int64())
    batch = pa.record_batch({"position": positions, "ordinal": pa.array([0] * 5, pa.int32())})
    verdict = Verdict(batch, pa.nulls(5, pa.string()))
    assert ALL_RECORDS.selected(verdict, split) is verdict
    assert rejects.selected(verdict, split).batch["position"].to_pylist() == [records[3][0]]
