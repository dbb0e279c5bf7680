import io
from unittest.mock import patch

from shards.exports.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_one_line_that_changes() -> None:
    terminal = Terminal()
    with patch("shards.exports.progress.time.monotonic", side_effect=[100.0, 100.1, 102.0, 110.0]):
        progress = Progress(4_000_000_000, stream=terminal)
        progress.write(1)  # too early
        progress.write(999_999_999)
        progress.finish(2_000_000_000)
        progress.write(2_000_000_000)
    first, second, third = terminal.getvalue().split("\r\033[K")[1:]
    assert first == "export 25 % | 1.0 of 4.0 GB | 500 MB/s | 6 s left"
    assert second == ""
    assert third == "export 100 % | 4.0 of 4.0 GB | 400 MB/s | 0 s left"


def test_elsewhere_nothing_is_shown() -> None:
    stream = io.StringIO()
    with patch("shards.exports.progress.time.monotonic", side_effect=[0.0]):
        progress = Progress(10, stream=stream)
        progress.write(5)
        progress.finish(10)
    assert stream.getvalue() == ""
