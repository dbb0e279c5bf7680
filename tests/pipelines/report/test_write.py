from pathlib import Path
from typing import Any

from pipelines.report.page import page
from pipelines.report.write import PAGE, write_page
from shards.manifest import Manifest


def test_the_page_of_a_run_is_written_into_the_dataset(
    manifest: Manifest, report: dict[str, Any], tmp_path: Path
) -> None:
    write_page(tmp_path, manifest, report)
    assert [path.name for path in tmp_path.iterdir()] == [PAGE]
    assert (tmp_path / PAGE).read_text() == page(manifest, report)
