"""The files of a tokenizer beside the weights, as far as it is known."""

from pathlib import Path

from shards.storage.files import atomic_write, write_json
from trainer.export.subject import Subject

_NAME = "tokenizer.json"
_UNKNOWN = (
    "no tokenizer's files: the run does not hold them; give --tokenizer and export again, or copy "
    "them there"
)


def write_transformers_tokenizer(subject: Subject, folder: Path) -> list[str]:
    """Write what AutoTokenizer reads, and return what is missing."""
    problems = copy_tokenizer(subject, folder)
    if problems or subject.tokenizer is None:
        return problems
    end = subject.tokenizer.pieces()[subject.tokenizer.special["eos"]].decode()
    names = dict.fromkeys(("bos_token", "eos_token", "unk_token"), end)
    content = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": subject.shape.position_rows,
        "clean_up_tokenization_spaces": False,
        **names,
    }
    write_json(folder / "tokenizer_config.json", content)
    return []


def copy_tokenizer(subject: Subject, folder: Path) -> list[str]:
    """Write the tokenizer as one file, and return what is missing."""
    tokenizer = subject.tokenizer
    if tokenizer is None:
        return [_UNKNOWN]
    text = tokenizer.transformers_json()
    if text is None:
        return [f"no {_NAME}: {tokenizer.spec} cannot be written as one; copy its files yourself"]
    with atomic_write(folder / _NAME) as handle:
        handle.write(text.encode())
    return []
