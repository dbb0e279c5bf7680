"""Run a corpus, and a shell command when a file is about to get its final name, or a folder to go.

python at.py PATTERN N COMMAND pipelines.wudao FLAGS...

The command runs at the n-th such file whose name matches, in the driver or in one of its workers,
which are forked from a process that imports this module too. `kill -9 0` ends driver and workers at
once if they are a process group of their own. Events are counted in a file, since the processes
share no memory.
"""

import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from multiprocessing import forkserver

COUNTER, AWAITED = "EVENTS_SO_FAR", "EVENT_AWAITED"

if __name__ == "__main__":
    os.environ[AWAITED] = json.dumps(sys.argv[1:4])
pattern, nth, command = json.loads(os.environ[AWAITED])
rename, remove = pathlib.Path.replace, shutil.rmtree


def count_event(target: object) -> None:
    if not re.search(pattern, str(target)):
        return
    with pathlib.Path(os.environ[COUNTER]).open("ab") as counter:
        fcntl.flock(counter, fcntl.LOCK_EX)
        counter.write(b".")
        counter.flush()
        if counter.tell() == int(nth):
            subprocess.run(["sh", "-c", command], check=False)


def replace(self, target):
    count_event(target)
    return rename(self, target)


def rmtree(path, *args, **kwargs):
    count_event(f"rmtree {path}")
    return remove(path, *args, **kwargs)


pathlib.Path.replace, shutil.rmtree = replace, rmtree
preload = forkserver.set_forkserver_preload
if __name__ == "__main__":
    from pipelines.run.command import main

    folder = str(pathlib.Path(__file__).parent)
    paths = [*filter(None, [os.environ.get("PYTHONPATH")]), folder]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    forkserver.set_forkserver_preload = lambda modules: preload([*modules, "at"])

    with tempfile.NamedTemporaryFile() as counter:
        os.environ[COUNTER] = counter.name
        sys.exit(main(sys.argv[4], sys.argv[5:]))
