"""Runs the commands of a file in one process: `python -m tests.golden.together FILE`.

A line is what stands behind `python -m`. Each begins as it would by itself, but torch is imported
once for all of them, which is most of the time that a small one takes.
"""

import contextlib
import io
import runpy
import shlex
import sys
from pathlib import Path


def main(file: str) -> int:
    """Run them in turn, each with what it prints and its exit code, if that is not 0."""
    for line in Path(file).read_text("utf-8").splitlines():
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = _run(shlex.split(line))
        ending = f"exit code {code}\n" if code else ""
        print(f"$ {line}\n{printed.getvalue()}{ending}", end="", flush=True)
    return 0


def _run(words: list[str]) -> int:
    sys.argv = words
    sys.modules.pop(words[0], None)  # a command of before; runpy warns of it
    try:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
