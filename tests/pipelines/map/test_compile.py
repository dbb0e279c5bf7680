from typing import Any

import pytest

from pipelines import compiled
from pipelines.corpus.options import Options
from pipelines.map import compile as command
from pipelines.map.chain import native_parts
from pipelines.quality.catalog import PROFILES


def test_every_loop_of_every_run_is_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ready: set[str] = set()

    def load(options: Options, **chosen: Any) -> None:
        assert chosen["compiled"]
        ready.update(native_parts(options))

    monkeypatch.setattr(command, "load_chain", load)
    monkeypatch.setattr(compiled, "available", lambda: True)
    monkeypatch.setattr(compiled, "use_whole_seconds", lambda: None)
    assert command.main([]) == 0
    assert "native loops are ready after" in capsys.readouterr().out
    assert {"texts", "signatures", "pieces"} <= ready
    assert {f"profile {profile.name}" for profile in PROFILES} <= ready


def test_without_numba_the_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiled, "available", lambda: False)
    assert command.main([]) == 2
    assert "pip install 'corpusmill[fast]'" in capsys.readouterr().err
