"""Published datasets are read by the hub library's own client from a hub on localhost."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from shards.manifest import read_manifest
from tests.pipelines.read.fake_hub import Hub, serve
from tests.python import python

pytest.importorskip("huggingface_hub", reason="the extra [hub] is not installed")
pytestmark = pytest.mark.slow

NAME = "me/words"
FETCH = "import sys; from shards import fetch; print(fetch(sys.argv[1]))"
MEGATRON = ("-m", "shards", "megatron")


@dataclass
class Desk:
    """A dataset, and commands that use the hub."""

    folder: Path
    hub: Hub
    env: Mapping[str, str]

    def publish(self, branch: str, *, without: str = "") -> str:
        """Publish a branch with all files, or all but one, and return its commit."""
        files = {
            path: (self.folder / "data" / path).read_bytes()
            for path in (
                "manifest.json",
                *(path for path, _ in read_manifest(self.folder / "data").files()),
            )
            if path != without
        }
        self.hub.create(NAME)
        return self.hub.put(NAME, branch, files).commit

    def said(self, *words: str, code: int = 0, **env: str) -> str:
        """Run a Python command, check the exit code, and return the output."""
        done = python(*words, at=self.folder, **{**self.env, **env})
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def desk(grown: Path, tmp_path: Path) -> Iterator[Desk]:
    grown.rename(tmp_path / "data")
    with serve({}) as (endpoint, hub):
        env = {
            "HF_ENDPOINT": endpoint,
            "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_OFFLINE": "0",
        }
        yield Desk(tmp_path, hub, env)


def test_a_published_dataset_is_read(desk: Desk) -> None:
    commit = desk.publish("tried")
    name = f"hf:{NAME}@tried"
    assert "manifest 5" in desk.said("-m", "shards", "inspect", name)
    assert ": ok" in desk.said("-m", "shards", "verify", name)
    folder = Path(desk.said("-c", FETCH, name).splitlines()[0])
    assert folder.name == commit
    share = ("--check", "--nodes", "1")
    assert "no problems" in desk.said("-m", "shards", "place", str(folder), *share)
    assert not [*folder.glob("*/audit/*")], "what training does not read stays on the hub"
    assert desk.said("-c", FETCH, name, HF_HUB_OFFLINE="1").strip() == str(folder)
    missing = desk.said(*MEGATRON, f"hf:{NAME}", HF_HUB_OFFLINE="1", code=2)
    assert f"hf:{NAME} cannot be read from the hub" in missing
    assert "the hub cannot be reached" in missing


def test_a_dataset_that_is_half_uploaded_is_told_so(desk: Desk) -> None:
    shard = read_manifest(desk.folder / "data").shards()[0]
    desk.publish("main", without=f"{shard.path}.bin")
    said = desk.said("-m", "shards", "verify", f"hf:{NAME}", code=1)
    assert f"{shard.path}.bin is missing" in said
    assert "1 problem" in said
    assert "lacks 1 file that this node needs" in desk.said(*MEGATRON, f"hf:{NAME}", code=2)


def test_what_is_no_dataset_is_told_so(desk: Desk) -> None:
    assert "there is no such dataset" in desk.said(*MEGATRON, f"hf:{NAME}", code=2)
    desk.hub.create(NAME)
    assert "it is not a dataset of corpusmill" in desk.said(*MEGATRON, f"hf:{NAME}", code=2)
    assert "it has no revision v9" in desk.said(*MEGATRON, f"hf:{NAME}@v9", code=2)
