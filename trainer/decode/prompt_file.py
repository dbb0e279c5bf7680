"""Files of prompts: one a line, or JSON lines."""

from pathlib import Path

from shards.errors import UserError
from trainer.json_file import parse

_FIELD = "prompt"


def read_prompts(path: Path) -> list[str]:
    """Return the prompts of a file; lines without text are none.

    Args:
        path: of text, a prompt a line; or, if its name ends in .jsonl, of objects with a `prompt`,
            which may have several lines.

    Raises:
        UserError: it cannot be read, has no prompt, or a line of it is none.
    """
    try:
        lines = path.read_text("utf-8-sig").split("\n")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise UserError(f"{path}:{line} is not UTF-8: save the file in UTF-8.") from error
    is_json = path.suffix == ".jsonl"
    prompts = [
        _prompt_in(line, f"{path}:{number}") if is_json else line.rstrip("\r")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    if not prompts:
        raise UserError(f"{path} has no prompt: write one a line.")
    return prompts


def _prompt_in(line: str, place: str) -> str:
    try:
        content = parse(line)
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{place} is no JSON ({error}): expected an object with a {_FIELD}."
        ) from error
    prompt = content.get(_FIELD) if isinstance(content, dict) else None
    if not isinstance(prompt, str):
        raise UserError(
            f'{place} has no {_FIELD}: expected an object, as {{"{_FIELD}": "It was [MASK]."}}; '
            f"found {line.strip()[:60]}."
        )
    return prompt
