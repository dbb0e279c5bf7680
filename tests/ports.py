"""Ports for servers that tests start."""

import itertools
import os
import socket

_FIRST, _PER_WORKER = 12_000, 2_000
"""Below the ports that Linux gives to outgoing connections (from 32,768 on), any of which could
take a port between the moment it is found free and the moment its server listens."""

_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8
_next = itertools.count(os.getpid())


def free_port() -> int:
    """A port of localhost where nothing listens, given once to this worker and to no other."""
    while True:
        port = _FIRST + _worker * _PER_WORKER + next(_next) % _PER_WORKER
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
