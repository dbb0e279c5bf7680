from collections.abc import Sequence
from pathlib import Path

import pytest

from pipelines import build
from tests.pipelines.write.pipes import TOKENIZER

SIZES = (19, 20, 100, 640, 1000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fraction", "wanted"),
    [
        (1e-20, [0, 1, 5, 32, 32]),  # no hash is below this
        (0.001, [0, 1, 5, 32, 32]),
        (0.04, [0, 1, 5, 32, 37]),  # the last count is the fraction, as hashes decide
    ],
)
def test_validation_is_the_fraction_within_its_bounds(
    tmp_path: Path, fraction: float, wanted: Sequence[int]
) -> None:
    sources = {f"of-{size}": tmp_path / f"{size}.txt" for size in SIZES}
    for size, path in zip(SIZES, sources.values(), strict=True):
        path.write_text("".join(f"the note {number} of {size}\n" for number in range(size)))
    options = {
        "tokenizer": TOKENIZER,
        "languages": "all",
        "language_threshold": 0,
        "validation": fraction,
        "shards": 1,
    }
    made = build("text", input=sources, output=tmp_path / "out", dedup="none", **options).manifest
    held_out = [made.shards(source, split="validation") for source in sources]
    assert [sum(shard.documents for shard in shards) for shards in held_out] == wanted
