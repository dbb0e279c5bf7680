import errno
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from pickle import UnpicklingError

import pytest
import torch

from shards.errors import DamageError, UserError
from tests.trainer.poison import POISONS, Payload
from trainer.torch_file import (
    deepspeed_types,
    explain_damage,
    read_torch_file,
    weights_only,
)


class Plain:
    """A custom class, which weights-only loading does not allow."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.pt"
    torch.save({"weights": torch.arange(3), "step": 1}, path)
    return path


@pytest.mark.parametrize("way", POISONS)
def test_nothing_is_run(path: Path, tmp_path: Path, way: str) -> None:
    trace = tmp_path / "it-ran"
    POISONS[way](path, Payload(trace))
    with pytest.raises(UserError, match=rf"^{path} (was not loaded|cannot be read)"):
        read_torch_file(path, [])
    for wanted in (None, False, True):
        with weights_only([]), pytest.raises(UnpicklingError):
            torch.load(path, weights_only=wanted)
    assert not trace.exists()


def test_what_a_refused_file_names(path: Path, tmp_path: Path) -> None:
    torch.save({"a": Payload(tmp_path / "b"), "c": Plain()}, path)
    with pytest.raises(UserError, match=r"it names posix\.mkdir\. This trainer does not"):
        read_torch_file(path, [])


def scripted(path: Path) -> None:
    torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), str(path))


def behind_a_pickle(path: Path) -> None:
    """Make a file that is both a zip archive, as some readers see it, and a pickle."""
    content = path.read_bytes()
    POISONS["plain"](path, Payload(path.with_name("it-ran")))
    path.write_bytes(path.read_bytes() + content)


def without_its_pickle(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/version", "3")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "text": lambda path: path.write_text("weights"),
    "a script": scripted,
    "two files in one": behind_a_pickle,
    "no pickle": without_its_pickle,
}


@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning")
@pytest.mark.filterwarnings("ignore:.*looks like a TorchScript archive")
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_is_no_file_of_tensors(path: Path, damage: Callable[[Path], object]) -> None:
    damage(path)
    with pytest.raises(UserError, match=rf"^{path} (cannot be read .*Copy it again|was not load)"):
        read_torch_file(path, [])
    assert not path.with_name("it-ran").exists()


REFUSALS: dict[str, Exception] = {
    "memory": MemoryError(),
    "memory of a device": torch.OutOfMemoryError("CUDA out of memory"),
    "a lost rank": RuntimeError("[gloo/gloo/transport/tcp/pair.cc:545] Connection closed by peer"),
}


@pytest.mark.parametrize("error", REFUSALS.values(), ids=REFUSALS)
def test_what_tells_nothing_of_a_file(path: Path, error: Exception) -> None:
    with pytest.raises(type(error)) as caught, explain_damage(path, "It broke", "."):
        raise error
    assert caught.value is error


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.EACCES])
def test_a_file_that_the_system_does_not_let_be_read(path: Path, number: int) -> None:
    told = explain_damage(path, "It broke", ". Remove it.")
    with pytest.raises(UserError, match=rf"^{path} cannot be read now .*not mean") as caught, told:
        raise OSError(number, os.strerror(number))
    assert not isinstance(caught.value, DamageError)


@pytest.mark.parametrize("error", [RuntimeError("odd"), OSError(errno.EINVAL, "odd")], ids=repr)
def test_what_damage_can_cause(path: Path, error: Exception) -> None:
    told = explain_damage(path, "It broke", ". Remove it.")
    with pytest.raises(DamageError, match=r"^It broke \(.*odd\)\. Remove it\.$"), told:
        raise error


def test_the_environment_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", raising=False)
    torch.save(Plain(), path)
    before = dict(os.environ)
    with weights_only([]), pytest.raises(UnpicklingError):
        torch.load(path)
    assert dict(os.environ) == before
    with weights_only([Plain]):
        assert isinstance(torch.load(path, weights_only=False), Plain)
    assert Plain not in torch.serialization.get_safe_globals()


@pytest.mark.slow  # the test loads DeepSpeed
def test_deepspeeds_types(path: Path) -> None:
    """These types include one that only checkpoints in fp16 have, which no CPU writes."""
    from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler  # noqa: PLC0415 - slow
    from deepspeed.runtime.zero.config import ZeroStageEnum  # noqa: PLC0415 - slow

    scaler = DynamicLossScaler(2**16, 2.0, 1000, 1, 2, False)
    torch.save({"loss_scaler": scaler, "zero_stage": ZeroStageEnum(2)}, path)
    with pytest.raises(UserError, match="DynamicLossScaler"):
        read_torch_file(path, [])
    content = read_torch_file(path, deepspeed_types())
    assert vars(content["loss_scaler"]) == vars(scaler)
    assert content["zero_stage"] is ZeroStageEnum.gradients
