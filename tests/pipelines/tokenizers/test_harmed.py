"""Tokenizers of others: whatever is in their files, a paragraph says so, or they work."""

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.corpus.recipe import SAMPLE
from pipelines.engine.trial import try_in_child
from pipelines.tokenizers import huggingface
from pipelines.tokenizers.agreement import CHECK_TEXTS
from pipelines.tokenizers.tokenizer import load_tokenizer
from shards.errors import UserError
from tests.pipelines.mutations import HUGE, harmed_bytes, harmed_json, harmed_messages
from tests.pipelines.tokenizers.trained import KINDS, field, train

Harmed = Iterator[tuple[str, bytes]]

OWN_FAILURE = re.compile(r"(Type|Key|Value|Index|Attribute|Recursion|Unicode\w+|Assertion)Error")
"""What our own code would raise if it believed a file; a library may say so, in its words."""


def check_use(spec: str) -> str:
    """Load and use a tokenizer as the commands do, and return what the user is told; "" if used."""

    def use() -> None:
        tokenizer = load_tokenizer(spec)
        tokens, _, failures = tokenizer.encode_batch(CHECK_TEXTS)
        assert not len(tokens) or int(tokens.max()) < tokenizer.pieces
        assert failures == []
        assert tokenizer.vocabulary().num_rows == tokenizer.vocabulary_size

    try:
        try_in_child(use, spec)
    except UserError as error:
        return str(error)
    return ""


def check_all(harmed: Harmed, spec: Callable[[str, bytes], str]) -> None:
    told = {name: check_use(spec(name, content)) for name, content in harmed}
    for name, message in told.items():
        assert len(message) < 1500, name
        assert "\n" not in message, name
        assert not OWN_FAILURE.search(message), f"{name}: {message}"
        assert "does not survive" not in message, f"{name}: {message}"
    assert any(told.values()), "nothing was harmed"


def written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


SEEDS = [pytest.param(1, 16), pytest.param(2, 96, marks=pytest.mark.nightly)]


@pytest.mark.parametrize(("seed", "number"), SEEDS)
@pytest.mark.parametrize("kind", ["identity", "nmt_nfkc", "line breaks"])
def test_sentencepiece(tmp_path: Path, kind: str, seed: int, number: int) -> None:
    content = train(**KINDS[kind])

    def spec(name: str, harmed: bytes) -> str:
        return f"sentencepiece:{written(tmp_path / f'{name}.model', harmed)}"

    check_all(harmed_bytes(content, seed=seed, number=number), spec)
    check_all(harmed_messages(content, seed=seed, number=number // 2), spec)


@pytest.mark.parametrize(("seed", "number"), SEEDS)
@pytest.mark.parametrize("kind", ["hf_path", "bert_path"])
def test_tokenizer_json(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, seed: int, number: int
) -> None:
    content = request.getfixturevalue(kind).read_bytes()

    def spec(name: str, harmed: bytes) -> str:
        return f"hf:{written(tmp_path / f'{name}.json', harmed)}"

    check_all(harmed_bytes(content, seed=seed, number=number // 3), spec)
    check_all(harmed_json(content, seed=seed, number=number), spec)


@pytest.mark.parametrize(("seed", "number"), SEEDS)
def test_tiktoken_ranks(
    gpt2_ranks: dict[bytes, int], tmp_path: Path, seed: int, number: int
) -> None:
    content = b"".join(
        base64.b64encode(piece) + b" %d\n" % rank for piece, rank in gpt2_ranks.items()
    )
    check_all(
        harmed_bytes(content, seed=seed, number=number),
        lambda name, harmed: f"tiktoken:{written(tmp_path / name / 'gpt2.tiktoken', harmed)}",
    )


@pytest.mark.parametrize(("seed", "number"), SEEDS)
def test_merges(gpt2_path: Path, tmp_path: Path, seed: int, number: int) -> None:
    merges = gpt2_path.read_bytes()
    vocabulary = gpt2_path.with_name("tiny-vocab.json").read_bytes()

    def with_merges(name: str, harmed: bytes) -> str:
        written(tmp_path / name / "vocab.json", vocabulary)
        return f"tiktoken:{written(tmp_path / name / 'merges.txt', harmed)}"

    def with_vocabulary(name: str, harmed: bytes) -> str:
        written(tmp_path / name / "vocab.json", harmed)
        return f"tiktoken:{written(tmp_path / name / 'merges.txt', merges)}"

    check_all(harmed_bytes(merges, seed=seed, number=number // 2), with_merges)
    check_all(harmed_bytes(vocabulary, seed=seed, number=number // 2), with_vocabulary)
    check_all(harmed_json(vocabulary, seed=seed, number=number // 2), with_vocabulary)


@pytest.mark.parametrize("number", [HUGE, -1, 2**31, 2**63])
def test_ids_take_no_memory(hf_path: Path, tmp_path: Path, number: int) -> None:
    description = json.loads(hf_path.read_text())
    description["added_tokens"][1]["id"] = number
    path = written(tmp_path / "added.json", json.dumps(description).encode())
    assert f"a piece has the id {number}, with 402 pieces" in check_use(f"hf:{path}")
    description = json.loads(hf_path.read_text())
    description["model"]["vocab"]["a"] = number
    path = written(tmp_path / "vocab.json", json.dumps(description).encode())
    assert f"a piece has the id {number}, with 402 pieces" in check_use(f"hf:{path}")


def test_id_of_a_special_token_and_of_a_piece(hf_path: Path, tmp_path: Path) -> None:
    description = json.loads(hf_path.read_text())
    description["model"]["vocab"]["x"] = 401
    path = written(tmp_path / "tokenizer.json", json.dumps(description).encode())
    told = check_use(f"hf:{path}")
    assert "'x' and the special token '<|im_start|>' have the same id, 401" in told


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.model", "sentencepiece"),
        ("a.json", "hf"),
        ("gpt2.tiktoken", "tiktoken"),
        ("merges.txt", "tiktoken"),
    ],
)
@pytest.mark.parametrize("what", ["folder", "pipe", "endless", "dangling", "circle", "long"])
def test_what_is_no_file(tmp_path: Path, name: str, kind: str, what: str) -> None:
    path = tmp_path / name
    match what:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "endless":
            path.symlink_to("/dev/zero")
        case "dangling":
            path.symlink_to(tmp_path / "nowhere")
        case "circle":
            path.symlink_to(path)
        case "long":
            path = tmp_path / ("x" * 300 + name)
    message = check_use(f"{kind}:{path}")
    assert re.search(
        "no file|is a folder: name|is a folder, a pipe|cannot be read|no such file", message
    ), message


def test_model_with_ids_of_its_own(monkeypatch: pytest.MonkeyPatch, hf_path: Path) -> None:
    def beyond(path: Path, description: str) -> object:
        del path, description
        return lambda texts: (np.full(len(texts), 402, np.uint32), np.ones(len(texts), np.int64))

    monkeypatch.setattr(huggingface, "_reference", beyond)
    with pytest.raises(UserError, match="turns plain text into the id 402, which is none of its"):
        load_tokenizer(f"hf:{hf_path}", fast=False)


def test_byte_piece_that_is_none(tmp_path: Path) -> None:
    content = train() + field(1, field(1, b"<0xZZ>") + field(3, 6))
    path = written(tmp_path / "a.model", content)
    assert "is no SentencePiece model" in check_use(f"sentencepiece:{path}")


def panicking(description: dict[str, Any]) -> None:
    description["model"]["continuing_subword_prefix"] = "x" * 400


def huge(description: dict[str, Any]) -> None:
    description["added_tokens"][1]["id"] = HUGE


def test_a_panic_is_an_answer(hf_path: Path, tmp_path: Path) -> None:
    description = json.loads(hf_path.read_text())
    panicking(description)
    path = written(tmp_path / "tokenizer.json", json.dumps(description).encode())
    assert re.search(r"tokenizers cannot read it \(.*out of range", check_use(f"hf:{path}"))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["--workers", "2"]])
@pytest.mark.parametrize("harm", [panicking, huge])
def test_commands_say_so(
    hf_path: Path, tmp_path: Path, harm: Callable[[dict[str, Any]], None], workers: list[str]
) -> None:
    description = json.loads(hf_path.read_text())
    harm(description)
    path = written(tmp_path / "tokenizer.json", json.dumps(description).encode())
    command = [sys.executable, "-m", "pipelines.wudao", "--input", str(SAMPLE), *workers]
    command += ["--tokenizer", f"hf:{path}", "--output", str(tmp_path / "out")]
    for last in ([], ["--plan"]):
        done = subprocess.run([*command, *last], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert re.fullmatch(rf"pipelines\.wudao: {re.escape(str(path))}.*\n", done.stderr)
