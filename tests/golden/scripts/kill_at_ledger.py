"""Runs python -m ARGUMENTS, and kills it once it has written the ledger of a generation."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

DATA, BEFORE = Path("data"), Path("before")
LEDGER, MANIFEST = DATA / "ledger.json", DATA / "manifest.json"


def killed() -> bool:
    manifest = MANIFEST.read_bytes()
    run = subprocess.Popen([sys.executable, "-m", *sys.argv[1:]], stderr=subprocess.DEVNULL)
    while run.poll() is None and not LEDGER.exists():
        time.sleep(0.0005)
    run.kill()
    run.wait()
    return LEDGER.exists() and MANIFEST.read_bytes() == manifest


for _ in range(20):
    shutil.copytree(DATA, BEFORE)
    if killed():
        print("killed")
        shutil.copyfile(LEDGER, "ledger.json")
        shutil.rmtree(BEFORE)
        break
    # It was too fast, or too slow.
    shutil.rmtree(DATA)
    BEFORE.rename(DATA)
else:
    sys.exit("it was never killed in time")
