"""Datasets go to the hub and come from it: the library's own client, and a hub on localhost."""

import hashlib
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pipelines.job.command import main as run_corpus
from shards.__main__ import main
from shards.manifest import read_manifest, write_manifest
from tests.pipelines.read.fake_hub import Hub, serve
from tests.pipelines.runs import MODULE
from tests.shards.grown import FLAGS, Grown

pytest.importorskip("huggingface_hub", reason="the extra [hub] is not installed")
pytestmark = pytest.mark.slow

NAME = "me/words"
FETCH = "import sys; from shards import fetch; print(fetch(sys.argv[1]))"


@dataclass
class Desk:
    """A dataset, and commands on it that know the hub."""

    folder: Path
    hub: Hub
    env: Mapping[str, str]

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self, *words: str, **env: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, *words],
            env={**os.environ, **self.env, **env},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def said(self, *words: str, code: int = 0, **env: str) -> str:
        """What a command of Python prints, which ends with a code."""
        process = self.start(*words, **env)
        said, _ = process.communicate(timeout=300)
        assert process.returncode == code, said
        return said

    def push(self, *flags: str) -> str:
        return self.said("-m", "shards", "push", "data", NAME, *flags)

    def files(self, branch: str = "main") -> Mapping[str, bytes]:
        return self.hub.repository(NAME, branch).files

    def check_files(self, *others: str, branch: str = "main") -> None:
        """Assert that the hub has the files of the manifest as they are, and further names."""
        files = self.files(branch)
        own = {
            "manifest.json",
            "report.html",
            *(path for path, _ in read_manifest(self.data).files()),
        }
        assert {*files} == {*own, *others}
        assert all(files[path] == (self.data / path).read_bytes() for path in own)


@pytest.fixture
def desk(grown: Path, tmp_path: Path) -> Iterator[Desk]:
    grown.rename(tmp_path / "data")
    # A dataset with the text of removed documents would be refused.
    manifest = replace(read_manifest(tmp_path / "data"), removals=())
    write_manifest(tmp_path / "data", manifest)
    with serve({}) as (endpoint, hub):
        env = {
            "HF_ENDPOINT": endpoint,
            "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_OFFLINE": "0",
            "HF_TOKEN": "hf_me",
        }
        yield Desk(tmp_path, hub, env)


def test_a_push_goes_on_where_it_was_killed(desk: Desk) -> None:
    desk.hub.room = threading.Semaphore(3)
    process = desk.start("-m", "shards", "push", "data", NAME)
    while len(desk.hub.uploads) < 3:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.kill()
    process.communicate()
    assert {*desk.files()} == {".gitattributes"}, "nothing half pushed is a dataset"
    desk.hub.room.release(1000)

    (desk.data / ".work").mkdir()
    (desk.data / ".work" / "unfinished").touch()
    (desk.data / "inputs.json").write_text("[]")
    said = desk.push()
    size = sum(entry.bytes for _, entry in read_manifest(desk.data).files())
    assert f"{size:,}  bytes are new there, 0 were there before" in said
    desk.check_files(".gitattributes", "README.md")
    held = Counter(hashlib.sha256(data).hexdigest() for data in desk.files().values())
    assert Counter(desk.hub.uploads) <= held, "nothing was sent twice"
    documents = sum(shard.documents for shard in read_manifest(desk.data).shards())
    assert f" of {documents} documents" in desk.files()["README.md"].decode()

    head = desk.hub.repository(NAME, "main").commit
    again = desk.push()
    assert f"0  bytes are new there, {size:,} were there before" in again
    assert f"hf:{NAME} is as it was, commit {head}" in again


def test_what_is_pushed_is_read(desk: Desk) -> None:
    desk.push("--private", "--revision", "tried")
    name = f"hf:{NAME}@tried"
    assert "manifest 5" in desk.said("-m", "shards", "inspect", name)
    assert ": ok" in desk.said("-m", "shards", "verify", name)
    folder = Path(desk.said("-c", FETCH, name).strip())
    assert folder.name == desk.hub.repository(NAME, "tried").commit
    share = ("--check", "--nodes", "1")
    assert "no problems" in desk.said("-m", "shards", "place", str(folder), *share)
    assert not [*folder.glob("*/audit/*")], "what training does not read stays on the hub"
    assert desk.said("-c", FETCH, name, HF_HUB_OFFLINE="1").strip() == str(folder)
    missing = desk.said("-m", "shards", "megatron", f"hf:{NAME}", HF_HUB_OFFLINE="1", code=2)
    assert f"hf:{NAME} cannot be read from the hub" in missing
    assert "the hub cannot be reached" in missing


def test_a_push_sends_what_is_new_and_deletes_what_is_old(desk: Desk, original: Grown) -> None:
    desk.push()
    before = {*desk.files()}
    words = ["--input", str(original.input), "--output", str(desk.data), "--append", *FLAGS]
    assert run_corpus(MODULE, words) == 0
    own = b"# Words\n\nof mine"
    desk.hub.put(NAME, "main", {**desk.files(), "README.md": own, "plot.png": b"png"})
    said = desk.push()
    desk.check_files(".gitattributes", "README.md", "plot.png")
    assert before < {*desk.files()}
    assert not [path for path in before if f"  {path}\n" in said]
    assert desk.files()["README.md"] == own, "what somebody wrote there stays"
    (desk.data / "README.md").write_text("# Mine")
    assert main(["compact", str(desk.data)]) == 0
    assert "files deleted, which no manifest names any more" in desk.push()
    desk.check_files(".gitattributes", "README.md", "plot.png")
    assert desk.files()["README.md"] == b"# Mine"


def test_who_may_not_push_is_told_why(desk: Desk) -> None:
    push = ("-m", "shards", "push", "data")
    assert "it wants a token that may write" in desk.said(*push, NAME, HF_TOKEN="", code=2)
    assert "HF_TOKEN may not write there: you is" in desk.said(*push, "you/words", code=2)
    assert "HF_HUB_OFFLINE is set" in desk.said(*push, NAME, HF_HUB_OFFLINE="1", code=2)
    assert not desk.hub.repositories


def test_what_is_no_dataset_is_told_so(desk: Desk) -> None:
    megatron = ("-m", "shards", "megatron")
    assert "there is no such dataset" in desk.said(*megatron, f"hf:{NAME}", code=2)
    desk.hub.create(NAME)
    assert "it is no dataset of corpusmill" in desk.said(*megatron, f"hf:{NAME}", code=2)
    assert "it has no revision v9" in desk.said(*megatron, f"hf:{NAME}@v9", code=2)
