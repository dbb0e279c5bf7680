"""Runs python -m ARGUMENTS, but ends the process just before it replaces the manifest."""

import os
import runpy
import shutil
import sys
from pathlib import Path

replace = Path.replace


def end_or_replace(source, target):
    if Path(target).name == "manifest.json":
        shutil.copyfile("data/ledger.json", "ledger.json")
        os._exit(0)
    return replace(source, target)


Path.replace = end_or_replace
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
sys.exit("the manifest was not replaced")
