from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.steps.block import Block
from shards.errors import UserError
from tests.pipelines.steps.batches import CHINESE, ENGLISH, batch


def test_blocked_addresses_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "domains").write_text("bad.example\n")
    block = Block([str(tmp_path / "domains")])
    urls = pa.array(["https://www.bad.example/x", "https://good.example/"], pa.large_string())
    verdict = block(batch(CHINESE, ENGLISH).append_column("url", urls))
    assert verdict.reasons.to_pylist() == ["url-blocklist", None]
    with pytest.raises(UserError, match="--url-blocklist needs a corpus whose records have a url"):
        block(batch(CHINESE))
