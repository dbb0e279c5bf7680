"""Finds free ports for the servers that tests start."""

import itertools
import os
import socket

_FIRST, _PER_WORKER = 12_000, 2_000
"""The first port, and the number of ports per worker of pytest. All are below 32,768, from which
the ports of outgoing connections are taken, so no connection can take a port before its server
does."""

_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8
_next = itertools.count(os.getpid())


def free_port() -> int:
    """Return a free port of localhost that no other call or worker gets."""
    while True:
        port = _FIRST + _worker * _PER_WORKER + next(_next) % _PER_WORKER
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
