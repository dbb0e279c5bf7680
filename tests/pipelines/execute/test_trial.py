import os
import re
import signal
import time

import psutil  # type: ignore[import-untyped]  # it has no stubs
import pytest

from pipelines.execute import trial
from pipelines.execute.trial import try_in_child
from shards.errors import UserError


def refuse() -> None:
    raise UserError("x.json is no tokenizer")


def panic() -> None:
    os.write(2, b"thread panicked\n")
    raise BaseException("range end\nout of bounds")  # as panics of Rust are


def spin() -> None:
    while True:
        pass


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (refuse, "^x.json is no tokenizer$"),
        (panic, r"^--tokenizer x cannot be loaded: its library fails on it \(BaseException: range"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), r"does not survive \(ended by SIGSEGV\)"),
        (os.abort, r"does not survive \(ended by SIGABRT\)"),
        (lambda: os._exit(255), r"does not survive \(exit code 255\)"),
        (lambda: bytearray(1 << 34), "there is not enough memory for what it asks for"),
    ],
)
def test_what_becomes_of_a_child_is_told(
    load: trial.Callable[[], object], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError, match=message) as told:
        try_in_child(load, "--tokenizer x")
    assert "\n" not in str(told.value)
    assert capfd.readouterr() == ("", "")


def test_nothing_to_tell() -> None:
    begun, children = os.getpid(), psutil.Process().children()
    try_in_child(lambda: [0] * 1000, "x")
    assert os.getpid() == begun
    assert set(psutil.Process().children()) <= set(children)


@pytest.mark.parametrize("load", [spin, lambda: time.sleep(60)])
def test_what_never_ends(
    load: trial.Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "MOST_SECONDS", 1)
    with pytest.raises(UserError, match=re.escape("its library is not done after")):
        try_in_child(load, "x")
