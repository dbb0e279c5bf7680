import errno
import signal
import sys

import pytest

from tests.trainer.alone import ALONE
from trainer.distributed import Stop


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 143),
        (signal.SIGHUP, 129),
        (signal.SIGUSR1, 138),
    ],
)
def test_signals_are_remembered(number: int, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(number)
    with Stop(ALONE) as stop:
        assert stop.exit_code() == 0
        assert not stop.is_requested
        signal.raise_signal(number)
        signal.raise_signal(number)  # launchers send some signals twice
        assert stop.exit_code() == code
        assert stop.is_requested
    assert signal.getsignal(number) is before
    assert capsys.readouterr().err.count("stopping") == 1


class Closed:
    """A terminal that was closed."""

    def write(self, _: str) -> int:
        raise OSError(errno.EIO, "Input/output error")


def test_they_are_where_the_terminal_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stop(ALONE) as stop:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", Closed())
            signal.raise_signal(signal.SIGTERM)
        assert stop.exit_code() == 143
