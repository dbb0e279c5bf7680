"""Run a command, and another as soon as it says something: … TEXT ONE… -- OTHER…

What the first one says is printed, without the lines that say how long it has waited.
"""

import subprocess
import sys
from collections.abc import Sequence

from tests.job import die_with_parent


def main(text: str, *words: str) -> int:
    """Return the exit code of the first command, or of the second one if that fails."""
    split = words.index("--")
    first = subprocess.Popen(
        _python(words[:split]),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has one thread
    )
    assert first.stdout is not None
    code, is_said = 0, False
    for line in first.stdout:
        if text not in line:
            print(line, end="", flush=True)
        elif not is_said:
            is_said = True
            print(line.partition(text)[0] + text, flush=True)
            code = subprocess.run(_python(words[split + 1 :]), check=False).returncode
    return first.wait() or code


def _python(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", *words]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
