import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipelines.engine import pipeline
from pipelines.engine.beam import PipelineResult
from pipelines.engine.figures import NAMESPACE
from pipelines.run.build import build
from shards.manifest import read_manifest, sum_shards
from tests.pipelines.metrics import check_metrics
from tests.pipelines.runs import MODULE, small, write_wudao

Kinds = Mapping[str, Mapping[str, Any]]
"""Metrics by kind, then name."""


def page(text: object) -> dict[str, object]:
    return {"uniqueKey": "0", "dataType": "百科", "title": "", "content": text}


def write_pages(folder: Path) -> Path:
    """Two files: texts that are kept, one in both, two that are short, a record without a text."""
    characters = random.Random(0).choices(range(0x4E00, 0x9FA5), k=2000)
    letters = "".join(map(chr, characters))
    for part in range(2):
        whole = [letters[start : start + 300 + start % 7] for start in range(900 * part, 1200, 300)]
        records = [page(text) for text in (*whole, letters[part:50])]
        write_wudao(folder / f"part-{part}.json", [*records, *([page(7)] * part)])
    return folder


def metrics_of(result: PipelineResult) -> Kinds:
    found = result.metrics().query()  # type: ignore[no-untyped-call]  # Beam's has no types
    return {
        kind: {
            metric.key.metric.name: metric.committed
            for metric in metrics
            if metric.key.metric.namespace == NAMESPACE
        }
        for kind, metrics in found.items()
    }


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, Kinds]:
    """The metrics of the jobs that the test runs, by phase."""
    found: dict[str, Kinds] = {}
    real = pipeline.run_pipeline

    def run(*arguments: Any, phase: pipeline.Phase, in_process: bool) -> PipelineResult:
        result = real(*arguments, phase=phase, in_process=in_process)
        found[phase.name] = metrics_of(result)
        return result

    monkeypatch.setattr(pipeline, "run_pipeline", run)
    return found


@pytest.mark.slow
def test_metrics_of_an_in_process_run_say_what_its_report_says(
    tmp_path: Path, seen: dict[str, Kinds]
) -> None:
    rules = {"quality": ("glm",), "min_chars": 1, "dedup": "minhash", "max_reject_rate": 0.5}
    rules |= {"engine": ("--runner=DirectRunner",)}
    options = small(tmp_path / "out", write_pages(tmp_path / "in"), **rules)
    build(MODULE, options)
    report = json.loads((tmp_path / "out" / "report.json").read_bytes())
    counts = {phase: kinds["counters"] for phase, kinds in seen.items()}
    check_metrics(counts, report)
    account = report["accounting"]["wudao"]
    assert account["dropped"] == {"duplicate": 1, "glm-few-chars": 2}
    assert account["quarantined"] == {"wrong-type": 1}
    made = sum_shards(read_manifest(tmp_path / "out").generations[0].sources["wudao"].shards)
    assert counts["merge"]["tokens out"] == made.tokens
    assert counts["merge"]["documents out"] == made.documents == account["kept"]
