"""Files of prompts: one a line, or JSON lines."""

from pathlib import Path

from shards.errors import UserError
from trainer.tasks.items import read_items, read_text


def read_prompts(path: Path) -> list[str]:
    """Return the prompts of a file; lines without text are none.

    Args:
        path: of text, a prompt a line; or, if its name ends in .jsonl, of objects with a `prompt`,
            which may have several lines.

    Raises:
        UserError: it cannot be read, has no prompt, or a line of it is none.
    """
    if path.suffix == ".jsonl":
        prompts = [item.text("prompt") for item in read_items(path)]
    else:
        lines = read_text(path).split("\n")
        prompts = [line.rstrip("\r") for line in lines if line.strip()]
    if not prompts:
        raise UserError(f"{path} has no prompt: write one a line.")
    return prompts
