"""Whatever stands in the JSON files of a run's folder, a resume is right or refused."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shards.errors import UserError
from shards.records import to_json
from shards.storage.files import write_json
from tests.shards.json_mutations import mutated, text_of
from tests.trainer.alone import ALONE
from trainer import start
from trainer.checkpoints.checkpoint import Checkpoint, FileList, read_checkpoint
from trainer.settings import Config

pytestmark = pytest.mark.slow

FILES = ("step-1/whole-00000.json", "run.json")


@pytest.fixture
def run(
    tmp_path: Path, configure: Callable[..., Config], monkeypatch: pytest.MonkeyPatch
) -> tuple[Config, Path]:
    """Return a run and its folder, with a checkpoint that has no tensors."""
    folder = tmp_path / "run"
    stepper = SimpleNamespace(micro_batch=2, stage=0)
    monkeypatch.setattr(start, "make_stepper", lambda *_, **__: stepper)
    monkeypatch.setattr(start, "check_settings", lambda *_: None)
    config = configure("--save", str(folder), "--micro-batch", "2")
    begun = start.start(config, ALONE)
    file_list = FileList(
        version=1,
        step=1,
        ranks=(0,),
        world=1,
        stage=0,
        files={},
        state=begun.state(1, begun.data, bad_losses=0),
    )
    write_json(folder / FILES[0], to_json(file_list))
    begun.data.run.save(folder / "run.json")
    return config, folder


def written(content: Any, rng: random.Random) -> bytes:
    """Return a changed JSON value as bytes, sometimes cut or with a changed byte."""
    data = bytearray(text_of(mutated(content, rng.randrange(2**32))).encode())
    kind = rng.randrange(12)
    if kind == 0:
        del data[rng.randrange(len(data)) :]
    elif kind == 1:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def resumed(config: Config) -> start.StartedRun | str:
    try:
        return start.start(config, ALONE)
    except UserError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(8))
def test_a_crafted_file_is_refused_or_harmless(run: tuple[Config, Path], seed: int) -> None:
    config, folder = run
    rng = random.Random(seed)
    begun = start.start(config, ALONE)
    whole = folder.with_name("whole")
    shutil.copytree(folder, whole)
    refused = 0
    for _ in range(60):
        name = rng.choice(FILES)
        content = json.loads((whole / name).read_text())
        (folder / name).write_bytes(written(content, rng))
        result = resumed(config)
        if isinstance(result, str):
            refused += 1
            assert str(folder) in result, result
        else:
            seen = read_checkpoint(folder / "step-1", rank=0, world=1)
            # Whoever writes that its losses were bad makes the run start over, and it says so.
            is_bad = isinstance(seen, Checkpoint) and seen.bad_streak > 0
            assert result.step == (0 if is_bad else 1)
            assert result.data.sampler.identity == begun.data.sampler.identity
            assert isinstance(result.bad_losses, int)
        shutil.copy(whole / name, folder / name)
    assert 10 < refused < 60
