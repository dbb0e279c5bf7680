"""Runs a command, and ends it with all that it started when the standard input closes.

python guard.py COMMAND...

Whoever starts it holds the other end of its input: however that process ends, the input closes.
Children of children are found because they fall to this process when their own parent dies.
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
    # A shell that starts jobs in the background lets them ignore Ctrl-C, and that is inherited.
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
    """Kill what is below this process until nothing is left."""
    while below := psutil.Process().children(recursive=True):
        for process in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
