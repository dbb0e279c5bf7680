import logging
from pathlib import Path

import pytest
from hypothesis import given, settings

from pipelines.tokenizers import fast_bpe
from pipelines.tokenizers import tiktoken as tiktoken_tokens
from pipelines.tokenizers.byte_bpe import gpt2_json
from pipelines.tokenizers.tokenizer import load_tokenizer
from tests.pipelines.tokenizers.texts import AWKWARD_TEXTS, ids

pytestmark = pytest.mark.usefixtures("fastokens")


@pytest.fixture
def fastokens() -> None:
    pytest.importorskip("fastokens", reason="the fast engine is optional")


@pytest.mark.parametrize("kind", ["tiktoken", "hf"])
def test_fast_is_used_and_equal(kind: str, gpt2_path: Path, hf_path: Path) -> None:
    path = gpt2_path if kind == "tiktoken" else hf_path
    fast = load_tokenizer(f"{kind}:{path}")
    slow = load_tokenizer(f"{kind}:{path}", fast=False)
    assert fast.engine.startswith("fastokens ")
    assert slow.engine.startswith(("tiktoken ", "tokenizers "))
    assert fast.fingerprint == slow.fingerprint

    @settings(max_examples=200, deadline=None)
    @given(AWKWARD_TEXTS)
    def check(text: str) -> None:
        assert ids(fast, text) == ids(slow, text)

    check()


@pytest.mark.parametrize("pattern", ["_CL100K", "_O200K"])
def test_scanned_patterns_are_equal(pattern: str, gpt2_path: Path) -> None:
    ranks, encoding = tiktoken_tokens._merges_file(gpt2_path)
    encoding = tiktoken_tokens.Encoding(
        pattern=getattr(tiktoken_tokens, pattern),
        end_of_text=encoding.end_of_text,
        size=encoding.size,
    )
    assert tiktoken_tokens._model(ranks, encoding, fast=True).engine.startswith("fastokens ")


def test_an_engine_that_differs_is_refused(
    gpt2_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ranks, _ = tiktoken_tokens._merges_file(gpt2_path)
    swapped = {**ranks, b"a": ranks[b"b"], b"b": ranks[b"a"]}
    monkeypatch.setattr(tiktoken_tokens, "gpt2_json", lambda _: gpt2_json(swapped))
    with caplog.at_level(logging.WARNING):
        tokenizer = load_tokenizer(f"tiktoken:{gpt2_path}")
    assert tokenizer.engine.startswith("tiktoken ")
    assert "fastokens" in caplog.text
    assert "for 'a' it gives" in caplog.text


def test_an_engine_that_fails_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        encode = fast_bpe.fastokens_encoder(
            lambda: fast_bpe.fast_from_json("{}"),
            None,  # type: ignore[arg-type]  # never reached
            engine="x",
        )
    assert encode is None
    assert "fastokens" in caplog.text
    assert "x takes its place" in caplog.text
