import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pipelines.inputs.hub import parse_hub_dataset
from shards.errors import UserError
from tests.pipelines.inputs.fake_hub import Hub, Repository, serve

pytestmark = pytest.mark.slow

pytest.importorskip("datasets", reason="the extra [hub] is not installed")

WORKER = Path(__file__).parent / "ask_hub.py"
Answer = Mapping[str, Any]
Ask = Callable[[str], Answer]


def card(configs: Mapping[str, Mapping[str, str]]) -> bytes:
    """The head of a README.md that names configs, their splits and files."""
    lines = ["---", "configs:"]
    for config, splits in configs.items():
        lines += [f"- config_name: {config}", "  data_files:"]
        for split, path in splits.items():
            lines += [f"  - split: {split}", f"    path: {path}"]
    return "\n".join([*lines, "---", "# A dataset", ""]).encode()


# Laid out as the cards of HuggingFaceFW/fineweb and HuggingFaceFW/fineweb-2 are.
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


@contextmanager
def asking(home: Path, **variables: str) -> Iterator[Ask]:
    """Yield a function that asks another process what an input names."""
    settings = {
        "HF_HOME": str(home),
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HF_") and not name.lower().endswith("_proxy")
    }
    worker = subprocess.Popen(
        [sys.executable, str(WORKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**inherited, **settings, **variables},
        text=True,
    )
    assert worker.stdin
    assert worker.stdout
    stdin, stdout = worker.stdin, worker.stdout

    def ask(spec: str) -> Answer:
        stdin.write(f"{spec}\n")
        stdin.flush()
        answer: Answer = json.loads(stdout.readline())
        return answer

    try:
        yield ask
    finally:
        worker.kill()
        worker.wait()
        stdin.close()
        stdout.close()


@pytest.fixture(scope="module")
def hub() -> Iterator[tuple[str, Hub]]:
    with serve(DATASETS) as served:
        yield served


@pytest.fixture(scope="module")
def ask(hub: tuple[str, Hub], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    with asking(tmp_path_factory.mktemp("hub"), HF_ENDPOINT=hub[0], HF_TOKEN="hf_secret") as ask:
        ask("hf:fw/none")  # by now the libraries are imported
        yield ask


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        (
            "hf:fw/fineweb",
            [
                "data/CC-MAIN-2013-20/000_00000.parquet",
                "data/CC-MAIN-2024-10/000_00000.parquet",
                "data/CC-MAIN-2024-10/000_00001.parquet",
            ],
        ),
        ("hf:fw/fineweb@refs/convert/parquet:sample-10BT", ["sample/10BT/000_00000.parquet"]),
        (
            "hf:fw/fineweb:CC-MAIN-2024-10",
            [
                "data/CC-MAIN-2024-10/000_00000.parquet",
                "data/CC-MAIN-2024-10/000_00001.parquet",
            ],
        ),
        (
            "hf:fw/fineweb-2:cmn_Hani",
            ["data/cmn_Hani/train/000_00000.parquet", "data/cmn_Hani/train/000_00001.parquet"],
        ),
        ("hf:fw/fineweb-2:cmn_Hani_removed", ["data/cmn_Hani_removed/train/000_00000.parquet"]),
        ("hf:some/lines", ["more/train-2.jsonl.zst", "train.jsonl.zst"]),
        ("hf:some/lines::test", ["test.jsonl"]),
    ],
)
def test_a_part_of_a_dataset_is_found_and_read(ask: Ask, spec: str, paths: list[str]) -> None:
    name = parse_hub_dataset(spec).repository
    root = f"{name}@{DATASETS[name].commit}"
    entries = [DATASETS[name].entry(path) for path in paths]
    assert ask(spec) == {
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


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ("hf://datasets/fw/fineweb-2/data/cmn_Hani/train", ["000_00000", "000_00001"]),
        ("hf://datasets/fw/fineweb-2@v1/data/cmn_*/t*/000_00000.*", 3),
        ("hf://datasets/fw/fineweb/sample", ["100BT/000_00000", "10BT/000_00000"]),
    ],
)
def test_paths_on_the_hub_are_inputs_as_other_urls(ask: Ask, spec: str, names: Any) -> None:
    answer = ask(spec)
    if isinstance(names, int):
        assert len(answer["files"]) == names
    else:
        assert [file["relative"] for file in answer["files"]] == [f"{n}.parquet" for n in names]
    assert all(file["etag"] for file in answer["files"])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("hf:fw/none", r"fw/none::train cannot be read from http://127.* \(404 .*Check its name"),
        ("hf:fw/fineweb:cmn_Hani", r"BuilderConfig 'cmn_Hani' not found\. Available: \['default"),
        ("hf:fw/fineweb-2", r"Config name is missing.*available configs: \['aai_Latn'"),
        ("hf:some/gated", r"terms are accepted \(http://127.*/some/gated\) and HF_TOKEN is set"),
        (
            "hf://datasets/fw/none/x",
            r"hf://datasets/fw/none/x does not exist.*repository not found",
        ),
    ],
)
def test_what_cannot_be_read_is_explained_in_a_paragraph(ask: Ask, spec: str, message: str) -> None:
    error = ask(spec)["error"]
    with pytest.raises(UserError, match=message):
        raise UserError(error)
    assert "\n" not in error
    assert len(error) < 1000
    assert "hf_secret" not in error
