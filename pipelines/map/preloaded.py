"""What the process that workers are forked from imports for native loops, if it can be had.

A numba that cannot be imported must not end that process: each worker finds out by itself.
"""

import importlib
from contextlib import suppress

with suppress(Exception):
    importlib.import_module("numba")
