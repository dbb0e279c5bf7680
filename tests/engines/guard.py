"""Runs a command, and ends it and all processes it started when the standard input closes.

python guard.py COMMAND...

The process that starts it holds the other end of the input: however that process ends, the input
closes. Grandchildren are found because this process becomes their parent when their own dies.
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
    # A shell makes background jobs ignore Ctrl-C, and their children inherit that.
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
    """Kill all descendants of this process until none is left."""
    while below := psutil.Process().children(recursive=True):
        for process in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
