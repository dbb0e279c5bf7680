import logging
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import given, settings

from pipelines.tokenizers import bpe
from pipelines.tokenizers.bpe import (
    ENCODINGS,
    gpt2_json,
)
from pipelines.tokenizers.tokenizer import load_tokenizer
from tests.pipelines.tokenizers.texts import AWKWARD_TEXTS, ids

Ranks = dict[bytes, int]


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_published_patterns(name: str, monkeypatch: Any) -> None:
    # The ranks are in a separate file; all else is taken from tiktoken's own definition.
    public = pytest.importorskip("tiktoken_ext.openai_public")
    monkeypatch.setattr(public, "load_tiktoken_bpe", lambda *_, **__: {})
    definition = getattr(public, name)()
    encoding = ENCODINGS[name]
    assert definition["pat_str"] == encoding.pattern
    assert definition["special_tokens"]["<|endoftext|>"] == encoding.end_of_text
    assert max(definition["special_tokens"].values()) + 1 == encoding.size


def test_an_encoding_that_tiktoken_fetches(ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    end = len(ranks) + 2  # after two ids that stand for nothing
    library = tiktoken.Encoding(
        "gpt2",
        pat_str=ENCODINGS["cl100k_base"].pattern,
        mergeable_ranks=ranks,
        special_tokens={"<|endoftext|>": end, "<|fim_prefix|>": end + 1},
    )
    monkeypatch.setattr(tiktoken, "get_encoding", {"gpt2": library}.__getitem__)
    tokenizer = load_tokenizer("tiktoken:gpt2")
    assert (tokenizer.special["eos"], tokenizer.pieces) == (end, end + 2)
    assert ids(tokenizer, "so it is, 1234") == library.encode("so it is, 1234")


@pytest.fixture
def fastokens() -> None:
    pytest.importorskip("fastokens", reason="the fast engine is optional")


@pytest.mark.usefixtures("fastokens")
@pytest.mark.parametrize(("kind", "name"), [("tiktoken", "merges.txt"), ("hf", "level.json")])
def test_fast_is_used_and_equal(kind: str, name: str, models_path: Path) -> None:
    path = models_path / name
    fast = load_tokenizer(f"{kind}:{path}")
    slow = load_tokenizer(f"{kind}:{path}", fast=False)
    assert fast.library.startswith("fastokens ")
    assert slow.library.startswith(("tiktoken ", "tokenizers "))
    assert fast.fingerprint == slow.fingerprint

    @settings(max_examples=200, deadline=None)
    @given(AWKWARD_TEXTS)
    def check(text: str) -> None:
        assert ids(fast, text) == ids(slow, text)

    check()


@pytest.mark.usefixtures("fastokens")
def test_an_engine_that_differs_is_refused(
    models_path: Path,
    ranks: Ranks,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    swapped = {**ranks, b"a": ranks[b"b"], b"b": ranks[b"a"]}
    monkeypatch.setattr(bpe, "gpt2_json", lambda _: gpt2_json(swapped))
    with caplog.at_level(logging.WARNING):
        tokenizer = load_tokenizer(f"tiktoken:{models_path / 'merges.txt'}")
    assert tokenizer.library.startswith("tiktoken ")
    assert "for 'a' it gives" in caplog.text
