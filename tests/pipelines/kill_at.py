"""Run a corpus and kill -9 it when it is about to give the n-th file that matches its final name.

python kill_at.py PATTERN N pipelines.wudao FLAGS...
"""

import os
import pathlib
import re
import shutil
import signal
import sys

from pipelines.command import main

pattern, countdown = re.compile(sys.argv[1]), iter(range(int(sys.argv[2]) - 1))
rename, remove = pathlib.Path.replace, shutil.rmtree


def strike(target: object) -> None:
    if pattern.search(str(target)) and next(countdown, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)


def replace(self, target):
    strike(target)
    return rename(self, target)


def rmtree(path, *args, **kwargs):
    strike(f"rmtree {path}")
    return remove(path, *args, **kwargs)


pathlib.Path.replace, shutil.rmtree = replace, rmtree
sys.exit(main(sys.argv[3], sys.argv[4:]))
