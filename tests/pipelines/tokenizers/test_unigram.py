"""Compares Unigram's `tokenizer.json`, as in T5, XLM-R and ALBERT, with the library."""

import json
from functools import cache
from pathlib import Path

import pytest
import tokenizers
from hypothesis import HealthCheck, given, settings
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from pipelines.tokenizers.agreement import CHECK_TEXTS
from pipelines.tokenizers.tokenizer import Tokenizer, load_tokenizer
from tests.pipelines.tokenizers.texts import AWKWARD_TEXTS, SENTENCES, ids

_NAMES = ("<pad>", "</s>", "<s>", "<unk>", "<mask>", "<extra_id_0>")


def write(folder: Path) -> Path:
    """Train a small model, in which control tokens are pieces of the vocabulary."""
    library = tokenizers.Tokenizer(models.Unigram())
    library.normalizer = normalizers.NFKC()
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    library.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=260, special_tokens=[*_NAMES], unk_token="<unk>", show_progress=False
    )
    library.train_from_iterator([*SENTENCES, *CHECK_TEXTS], trainer)
    library.add_tokens(["plainly added"])
    path = folder / "tokenizer.json"
    library.save(str(path))
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("unigram"))


@cache
def loaded(path: Path) -> tuple[tokenizers.Tokenizer, Tokenizer]:
    return tokenizers.Tokenizer.from_file(str(path)), load_tokenizer(f"hf:{path}")


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=AWKWARD_TEXTS)
def test_texts_get_the_ids_of_the_library(path: Path, text: str) -> None:
    for name in _NAMES:
        text = text.replace(name, "")
    library, tokenizer = loaded(path)
    for each in (text, f"plainly added {text}plainly added"):
        assert ids(tokenizer, each) == library.encode(each, add_special_tokens=False).ids


def test_control_tokens_are_no_text(path: Path) -> None:
    tokenizer = load_tokenizer(f"hf:{path}")
    vocabulary = json.loads(path.read_text("utf-8"))["model"]["vocab"]
    numbers = {piece: number for number, (piece, _) in enumerate(vocabulary)}
    assert tokenizer.special["eos"] == numbers["</s>"]
    assert tokenizer.unknown == tokenizer.special["unk"] == numbers["<unk>"]
    controls = {numbers[name] for name in _NAMES} - {numbers["<unk>"]}
    for name in _NAMES:
        assert not controls & {*ids(tokenizer, f"{name} a{name}b {name} {numbers[name]}")}
