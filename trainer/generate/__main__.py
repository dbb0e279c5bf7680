"""Text from a trained model: blanks of prompts are filled, or texts go on.

The command, and the same from Python:

    python -m trainer.generate build/run "Bread is [MASK] in the oven." --top-k 40

    trained = open_trained("build/run")
    texts = ["Bread is [MASK] in the oven."]
    for found in generate_texts(trained.model, trained.tokenizer, texts, reading=trained.reading):
        print(found.text)
"""

import sys
from collections.abc import Sequence

from shards.command import exit_code, log_plainly
from shards.interrupt import ended_by_interrupt
from trainer.generate.asking import parse_asked


def main(argv: Sequence[str]) -> int:
    """Do what the command line says and return the exit code."""
    log_plainly()
    return exit_code("trainer.generate", lambda: _run(argv), stopped="the text is not whole")


def _run(argv: Sequence[str]) -> None:
    asked = parse_asked(argv)
    with ended_by_interrupt():
        from trainer.generate.writing import write_texts  # noqa: PLC0415  loads torch
    write_texts(asked)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
