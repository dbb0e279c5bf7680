"""The token that ends a document: from a flag, the tokenizer's own names, or a file."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipelines.steps.description import tokenizer_entry
from pipelines.tokenizers.tokenizer import load_tokenizer, restore_tokenizer
from shards.errors import UserError
from shards.vocabulary import Vocabulary
from tests.pipelines.tokenizers.texts import ids
from tests.pipelines.tokenizers.trained import train

CONFIG, MAP = "tokenizer_config.json", "special_tokens_map.json"
TURN = {"eos_token": {"content": "<|im_start|>", "lstrip": False}}
JSON, MODEL = "hf:FOLDER/tokenizer.json", "sentencepiece:FOLDER/tokenizer.model"


@pytest.fixture
def folder(models_path: Path, tmp_path: Path) -> Path:
    """A folder with each kind of tokenizer; tokenizer.json has no added token of a usual name."""
    level = json.loads((models_path / "level.json").read_text("utf-8"))
    level["added_tokens"][0]["content"] = "<｜end▁of▁sentence｜>"
    (tmp_path / "tokenizer.json").write_text(json.dumps(level), "utf-8")
    (tmp_path / "tokenizer.model").write_bytes(train())
    shutil.copy(models_path / "vocab.txt", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("spec", "eos", "beside", "expected"),
    [
        (JSON, "", {CONFIG: {"eos_token": "<｜end▁of▁sentence｜>"}}, "<｜end▁of▁sentence｜>"),
        ("hf:FOLDER", "", {CONFIG: TURN}, "<|im_start|>"),
        (JSON, "", {CONFIG: {"eos_token": None}, MAP: TURN}, "<|im_start|>"),
        (JSON, "", {CONFIG: {"eos_token": "<gone>"}, MAP: TURN}, "<|im_start|>"),
        (JSON, "<|im_start|>", {CONFIG: {"eos_token": "<｜end▁of▁sentence｜>"}}, "<|im_start|>"),
        ("hf:FOLDER/vocab.txt", "", {CONFIG: {"eos_token": "[SEP]"}}, "[PAD]"),
        ("hf:FOLDER/vocab.txt", "[SEP]", {}, "[SEP]"),
        (MODEL, "", {}, "<|endoftext|>"),
        (MODEL, "", {CONFIG: {"eos_token": "<|endoftext|>"}}, "<|endoftext|>"),
        (MODEL, "", {CONFIG: {"eos_token": "</s>"}}, "</s>"),
        (MODEL, "</s>", {}, "</s>"),
    ],
)
def test_what_ends_a_document(
    folder: Path, spec: str, eos: str, beside: dict[str, Any], expected: str
) -> None:
    for name, content in beside.items():
        (folder / name).write_text(json.dumps(content), "utf-8")
    spec = spec.replace("FOLDER", str(folder))
    tokenizer = load_tokenizer(spec, eos=eos)
    table = tokenizer.vocabulary()
    end = tokenizer.special["eos"]
    assert table["bytes"][end].as_py().decode() == expected
    assert table["special"][end].as_py()
    assert end == tokenizer.special["pad"]
    assert end not in ids(tokenizer, f"{expected} a{expected}b")
    entry = tokenizer_entry(spec, tokenizer)
    again = restore_tokenizer(entry, Vocabulary(table).tokenizer, where="v.arrow")
    assert (again.special, again.fingerprint) == (tokenizer.special, tokenizer.fingerprint)
    assert again.vocabulary() == table


def test_a_usual_name_comes_before_the_end_of_a_turn(models_path: Path, folder: Path) -> None:
    shutil.copy(models_path / "level.json", folder / "tokenizer.json")
    (folder / CONFIG).write_text(json.dumps(TURN))
    tokenizer = load_tokenizer(f"hf:{folder}")
    assert tokenizer.vocabulary()["bytes"][tokenizer.special["eos"]].as_py() == b"<|endoftext|>"


def test_a_piece_of_texts_ends_no_document(folder: Path) -> None:
    with pytest.raises(UserError, match="could write control tokens"):
        load_tokenizer(f"sentencepiece:{folder}/tokenizer.model", eos="e")


def test_a_published_model_says_that_its_own_end_is_not_used(folder: Path) -> None:
    assert load_tokenizer(f"sentencepiece:{folder}/tokenizer.model").unused_end == ""
    path = folder / "published.model"
    made_of_files = b"\x12\x07\x0a\x05a.txt"  # trainer_spec { input: "a.txt" }
    path.write_bytes(train() + made_of_files)
    assert load_tokenizer(f"sentencepiece:{path}").unused_end == "</s>"
    assert load_tokenizer(f"sentencepiece:{path}", eos="</s>").unused_end == ""
