"""A run on a published dataset reads one commit, and continues with the same commit."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.pipelines.read.fake_hub import Hub, serve
from tests.python import python
from tests.trainer.runs import Trial

pytest.importorskip("huggingface_hub", reason="the extra [hub] is not installed")
pytestmark = pytest.mark.slow

NAME = "me/rule"


@dataclass
class Desk:
    folder: Path
    hub: Hub
    env: Mapping[str, str]
    files: Mapping[str, bytes]

    def publish(self, note: str) -> str:
        """Publish the dataset with this README.md, and return the commit."""
        return self.hub.put(NAME, "main", {**self.files, "README.md": note.encode()}).commit

    def train(self, *flags: str, code: int = 0, **env: str) -> str:
        words = ("-m", "trainer.train", "--model", "model.json", "--batch-size", "4")
        also = ("--save", "run", "--eval-every", "0")
        done = python(*words, *also, *flags, at=self.folder, **{**self.env, **env})
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    def data(self) -> str:
        run = json.loads((self.folder / "run" / "run.json").read_text())
        return str(run["mixes"][0]["data"][0])


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    Trial.on_corpus(tmp_path)
    paths = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    files = {path.relative_to(tmp_path / "data").as_posix(): path.read_bytes() for path in paths}
    with serve({}) as (endpoint, hub):
        hub.create(NAME)
        env = {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0"}
        yield Desk(tmp_path, hub, env, files)


def test_a_run_goes_on_with_the_commit_that_it_began_with(desk: Desk) -> None:
    first = desk.publish("first")
    source = f"hf:{NAME}:web=1"
    desk.train("--data", source, "--max-steps", "2")
    assert f"/snapshots/{first}@1:web" in desk.data()
    second = desk.publish("second")
    desk.hub.requests.clear()
    desk.train("--data", source, "--max-steps", "3")
    assert f"/snapshots/{first}@1:web" in desk.data()
    assert not [request for request in desk.hub.requests if "/resolve/" in request]
    # If a revision is named, it counts; if there is no connection, the last known commit counts.
    named = desk.train("--data", f"hf:{NAME}@main:web=1", "--max-steps", "4")
    assert second in desk.data(), named
    desk.train("--data", source, "--max-steps", "5", HF_HUB_OFFLINE="1")
    assert second in desk.data()


def test_a_published_dataset_is_not_followed(desk: Desk) -> None:
    desk.publish("first")
    said = desk.train("--data", f"hf:{NAME}", "--follow", "--max-steps", "2", code=2)
    assert f"hf:{NAME} is published: a run reads the commit that it started with" in said
