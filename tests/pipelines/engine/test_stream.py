"""What the last step of a watch's pipeline does when a task fails."""

import pickle
from typing import Any

import pytest

from pipelines.engine.stream import Map
from pipelines.engine.task import packed
from shards.errors import UserError


class Steps:
    """Takes note of failures."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def fail(self, _: Any, message: str) -> bool:
        self.messages.append(message)
        return True


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (UserError("the file is gone"), "the file is gone"),
        (ValueError("odd bytes\nin it"), "in it"),
        (KeyError("field"), "KeyError: 'field'"),
        (
            RuntimeError('Traceback:\n  File "x"\nArrowInvalid: no table\n'),
            "ArrowInvalid: no table",
        ),
    ],
)
def test_whatever_a_task_raises_is_noted_and_the_stream_goes_on(
    error: Exception, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps()
    monkeypatch.setattr("pipelines.engine.stream._steps", lambda _: steps)
    Map(b"", packed(_raiser, pickle.dumps(error)), 0).process("task")
    assert steps.messages == [message]


def _raiser(error: bytes) -> Any:
    def run(_: Any) -> None:
        raise pickle.loads(error)

    return run
