import gzip
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.corpus.spec import load_spec
from pipelines.job import estimate
from pipelines.job.estimate import SourceEstimate, estimate_run
from pipelines.wudao import CORPUS
from tests.pipelines.runs import page

ROWS = 8000
NO_HURRY = 600.0
"""A time limit in seconds that a sample never reaches, so that only bytes limit the sample."""


def documents() -> Iterator[bytes]:
    """Yield lines whose texts do not compress to almost nothing."""
    for at in range(ROWS):
        figures = hashlib.sha512(b"%d" % at).hexdigest()
        yield orjson.dumps({"text": f"{page(at)['content']} {figures}"}) + b"\n"


def write_file(path: Path) -> None:
    if path.suffix == ".parquet":
        values = [orjson.loads(line)["text"] for line in documents()]
        pq.write_table(pa.table({"text": values}), path, row_group_size=500)
    else:
        with gzip.open(path, "wb", 1) if path.suffix == ".gz" else path.open("wb") as file:
            file.writelines(documents())


def sampled(path: Path, *, seconds: float = NO_HURRY) -> SourceEstimate:
    """Return the results that a sample of a file estimates."""
    spec = load_spec("pipelines.text")
    options = replace(
        spec.options(input=(str(path),), tokenizer=CORPUS.sample_tokenizer),
        output=path.parent / "out",
        language_threshold=0,
    )
    estimated = estimate_run("pipelines.text", options, seconds=seconds)
    assert not options.output.exists()
    return estimated.sources["text"]


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "parquet"])
def test_the_documents_of_a_file_are_known_from_a_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    path = tmp_path / f"a.{suffix}"
    write_file(path)
    # For gzip, bytes that were read ahead also count, some KiB, and pieces are measured in bytes of
    # the uncompressed content.
    share = 2 if suffix == "jsonl.gz" else 1 / 20
    monkeypatch.setattr(estimate, "PART_BYTES", round(path.stat().st_size * share))
    source = sampled(path)
    assert 0.01 < source.share < 0.9
    assert source.read == pytest.approx(ROWS, rel=0.1)
    assert source.kept + sum(source.left_out.values()) == pytest.approx(source.read, abs=3)
