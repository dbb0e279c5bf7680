import signal

import pytest

from tests.trainer.alone import ALONE
from trainer.stop import Stop


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_are_remembered(number: int, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(number)
    with Stop() as stop:
        assert stop.agreed_exit_code(ALONE) == 0
        signal.raise_signal(number)
        signal.raise_signal(number)  # launchers send some twice
        assert stop.agreed_exit_code(ALONE) == code
    assert signal.getsignal(number) is before
    assert capsys.readouterr().err.count("stopping") == 1
