"""Run a corpus, and a shell command when a file is about to get its final name, or a folder to go.

python at.py PATTERN N COMMAND pipelines.wudao FLAGS...

The command runs at the n-th such file whose name matches, in the driver or in one of its workers,
which import this module too. `kill -9 0` ends driver and workers at once if they are a process
group of their own. Events are counted in a file, since the processes share no memory.
"""

import fcntl
import os
import pathlib
import re
import subprocess
import sys
import tempfile

COUNTER = "EVENTS_SO_FAR"

pattern, nth, command = re.compile(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rename, remove = pathlib.Path.replace, pathlib.Path.rmdir


def count_event(target: object) -> None:
    if not pattern.search(str(target)):
        return
    with pathlib.Path(os.environ[COUNTER]).open("ab") as counter:
        fcntl.flock(counter, fcntl.LOCK_EX)
        counter.write(b".")
        counter.flush()
        if counter.tell() == nth:
            subprocess.run(["sh", "-c", command], check=False)


def replace(self, target):
    count_event(target)
    return rename(self, target)


def rmdir(self):
    count_event(f"rmdir {self}")
    return remove(self)


pathlib.Path.replace, pathlib.Path.rmdir = replace, rmdir
if __name__ == "__main__":
    from pipelines.run.command import main

    with tempfile.NamedTemporaryFile() as counter:
        os.environ[COUNTER] = counter.name
        sys.exit(main(sys.argv[4], sys.argv[5:]))
