from pathlib import Path

from shards.__main__ import main
from shards.history import generation_figures
from shards.manifest import read_manifest
from shards.storage.files import read_json, write_json
from tests.shards.generations import grow


def test_a_compacted_dataset_has_one_row_for_what_became_one(tmp_path: Path) -> None:
    for _ in range(3):
        grow(tmp_path, shards=1)
    before = read_manifest(tmp_path)
    rows = [
        {
            **generation_figures(generation),
            "known": number,
            "seconds": 1.5,
            "finished": f"2026-11-2{number}T10:00:00+00:00",
            "lag": {"median": 1, "worst": 2},
        }
        for number, generation in enumerate(before.generations)
    ]
    write_json(
        tmp_path / "report.json",
        {"dataset": before.identity, "generations": rows, "examples": {}},
    )
    assert main(["compact", str(tmp_path)]) == 0
    manifest = read_manifest(tmp_path)
    report = read_json(tmp_path / "report.json")
    assert report == {
        "dataset": manifest.identity,
        "examples": {},
        "generations": [
            {
                **generation_figures(manifest.generations[0]),
                "known": 3,
                "seconds": 4.5,
                "finished": "2026-11-22T10:00:00+00:00",
            },
        ],
    }
    assert report["generations"][0]["read"] == 126
