"""Runs a command, and kills it and all its descendants when the standard input closes.

python guard.py COMMAND...

The parent holds the other end of the input, which closes in whatever way the parent ends. The guard
finds grandchildren because it becomes their parent when their own parent dies.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading

import psutil

PR_SET_CHILD_SUBREAPER = 36


def main(command):
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    # Background jobs of a shell ignore SIGINT, and so do their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    threading.Thread(target=end_with_input, args=(child,), daemon=True).start()
    code = child.wait()
    end_all()
    return 128 - code if code < 0 else code


def end_with_input(child):
    os.read(0, 1)
    child.kill()


def end_all():
    """Kill the descendants of this process until none is left."""
    while below := psutil.Process().children(recursive=True):
        for process in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
