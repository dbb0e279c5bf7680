"""Runs the command of this folder."""

import sys

from shards.console import run_module

if __name__ == "__main__":
    sys.exit(run_module("trainer.finetune"))
