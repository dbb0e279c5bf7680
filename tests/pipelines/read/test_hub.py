import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipelines.read.hub import parse_hub_dataset
from tests.pipelines.read.fake_hub import Repository, answers, serve

pytestmark = pytest.mark.slow

pytest.importorskip("datasets", reason="the extra [hub] is not installed")

SCRIPT = Path(__file__).parent / "ask_hub.py"
Answer = Callable[[str], Mapping[str, Any]]


def card(configs: Mapping[str, Mapping[str, str]]) -> bytes:
    """Return a README.md whose metadata has configs, with their splits and files."""
    lines = ["---", "configs:"]
    for config, splits in configs.items():
        lines += [f"- config_name: {config}", "  data_files:"]
        for split, path in splits.items():
            lines += [f"  - split: {split}", f"    path: {path}"]
    return "\n".join([*lines, "---", "# A dataset", ""]).encode()


# The cards have the same structure as those of HuggingFaceFW/fineweb and fineweb-2.
FINEWEB = {
    "default": {"train": "data/*/*"},
    "sample-10BT": {"train": "sample/10BT/*"},
    "CC-MAIN-2024-10": {"train": "data/CC-MAIN-2024-10/*"},
}
FINEWEB_2 = {
    f"{name}{kind}": {split: f"data/{name}{kind}/{split}/*" for split in splits}
    for name in ("aai_Latn", "cmn_Hani", "rus_Cyrl", "spa_Latn", "tur_Latn", "zul_Latn")
    for kind, splits in {"": ("train", "test"), "_removed": ("train",)}.items()
}


def repository(*paths: str, configs: Any = None, gated: bool = False) -> Repository:
    head = {"README.md": card(configs)} if configs else {}
    return Repository(files={**head, **{path: path.encode() for path in paths}}, gated=gated)


DATASETS = {
    "fw/fineweb": repository(
        "data/CC-MAIN-2024-10/000_00000.parquet",
        "data/CC-MAIN-2024-10/000_00001.parquet",
        "data/CC-MAIN-2013-20/000_00000.parquet",
        "sample/10BT/000_00000.parquet",
        "sample/100BT/000_00000.parquet",
        configs=FINEWEB,
    ),
    "fw/fineweb-2": repository(
        *(
            f"data/{name}/{split}/000_00000.parquet"
            for name, splits in FINEWEB_2.items()
            for split in splits
        ),
        "data/cmn_Hani/train/000_00001.parquet",
        configs=FINEWEB_2,
    ),
    "some/lines": repository("train.jsonl.zst", "more/train-2.jsonl.zst", "test.jsonl", "LICENSE"),
    "some/gated": repository("train.jsonl", gated=True),
}


PARTS = {
    "hf:fw/fineweb": [
        "data/CC-MAIN-2013-20/000_00000.parquet",
        "data/CC-MAIN-2024-10/000_00000.parquet",
        "data/CC-MAIN-2024-10/000_00001.parquet",
    ],
    "hf:fw/fineweb@refs/convert/parquet:sample-10BT": ["sample/10BT/000_00000.parquet"],
    "hf:fw/fineweb:CC-MAIN-2024-10": [
        "data/CC-MAIN-2024-10/000_00000.parquet",
        "data/CC-MAIN-2024-10/000_00001.parquet",
    ],
    "hf:fw/fineweb-2:cmn_Hani": [
        "data/cmn_Hani/train/000_00000.parquet",
        "data/cmn_Hani/train/000_00001.parquet",
    ],
    "hf:fw/fineweb-2:cmn_Hani_removed": ["data/cmn_Hani_removed/train/000_00000.parquet"],
    "hf:some/lines": ["more/train-2.jsonl.zst", "train.jsonl.zst"],
    "hf:some/lines::test": ["test.jsonl"],
}
"""The files that each spec of a config and split names."""

PATHS = {
    "hf://datasets/fw/fineweb-2/data/cmn_Hani/train": ["000_00000.parquet", "000_00001.parquet"],
    "hf://datasets/fw/fineweb-2@v1/data/cmn_*/t*/000_00000.*": [
        "cmn_Hani/test/000_00000.parquet",
        "cmn_Hani/train/000_00000.parquet",
        "cmn_Hani_removed/train/000_00000.parquet",
    ],
    "hf://datasets/fw/fineweb/sample": ["100BT/000_00000.parquet", "10BT/000_00000.parquet"],
}
"""URLs on the hub, which are inputs like any other URLs, with the names of the URLs' files."""

REFUSED = {
    "hf:fw/none": r"fw/none::train cannot be read from http://127.* \(404 .*Check its name",
    "hf:fw/fineweb:cmn_Hani": r"BuilderConfig 'cmn_Hani' not found\. Available: \['default",
    "hf:fw/fineweb-2": r"Config name is missing.*available configs: \['aai_Latn'",
    "hf:some/gated": r"terms are accepted \(http://127.*/some/gated\) and HF_TOKEN is set",
    "hf://datasets/fw/none/x": r"hf://datasets/fw/none/x does not exist.*repository not found",
}


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """A function that returns the files of an input that a process finds on a localhost hub."""
    specs = [*PARTS, *PATHS, *REFUSED]
    home = tmp_path_factory.mktemp("hub")
    with serve(DATASETS) as (endpoint, _):
        found = answers(SCRIPT, endpoint, *specs, home=home, HF_TOKEN="hf_secret")
    return dict(zip(specs, found, strict=True)).__getitem__


@pytest.mark.parametrize("spec", PARTS)
def test_a_part_of_a_dataset_is_found_and_read(answer: Answer, spec: str) -> None:
    paths = PARTS[spec]
    name = parse_hub_dataset(spec).repository
    root = f"{name}@{DATASETS[name].commit}"
    entries = [DATASETS[name].entry(path) for path in paths]
    assert answer(spec) == {
        "files": [
            {
                "source": "web",
                "path": f"hf://datasets/{root}/{path}",
                "relative": f"{root}/{path}",
                "bytes": len(path),
                "mtime_ns": 0,
                "etag": entry["oid"],
            }
            for path, entry in zip(paths, entries, strict=True)
        ],
        "contents": paths,
    }


@pytest.mark.parametrize("spec", PATHS)
def test_paths_on_the_hub_are_inputs_like_other_urls(answer: Answer, spec: str) -> None:
    files = answer(spec)["files"]
    assert [file["relative"] for file in files] == PATHS[spec]
    assert all(file["etag"] for file in files)


@pytest.mark.parametrize("spec", REFUSED)
def test_errors_of_the_hub_are_explained_in_a_paragraph(answer: Answer, spec: str) -> None:
    error = answer(spec)["error"]
    assert re.search(REFUSED[spec], error), error
    assert "\n" not in error
    assert len(error) < 1000
    assert "hf_secret" not in error
