import base64
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import tiktoken
import tokenizers
from hypothesis import given, settings
from tokenizers import pre_tokenizers

from pipelines.tokenizers import bpe
from pipelines.tokenizers.bpe import (
    ENCODINGS,
    Encoding,
    byte_alphabet,
    fast_from_json,
    fastest,
    gpt2_json,
    merges,
    restore_tiktoken,
)
from pipelines.tokenizers.command_tokens import byte_bpe_commands
from pipelines.tokenizers.tokenizer import load_tokenizer
from shards.errors import UserError
from tests.pipelines.tokenizers.texts import AWKWARD_TEXTS, SENTENCES, decode, ids, shared

Ranks = dict[bytes, int]


def test_gpt2_files(gpt2_path: Path) -> None:
    tokenizer = load_tokenizer(f"tiktoken:{gpt2_path}")
    end = tokenizer.pieces - 1
    assert tokenizer.special == dict(byte_bpe_commands(end + 1, end_of_text=end).ids)
    for text in SENTENCES:
        assert decode(tokenizer, text) == text


def test_rank_file_is_the_same_model(
    gpt2_path: Path, gpt2_ranks: Ranks, tmp_path: Path, monkeypatch: Any
) -> None:
    pattern, end = ENCODINGS["gpt2"].pattern, len(gpt2_ranks)
    encoding = Encoding(pattern=pattern, end_of_text=end, size=end + 1)
    monkeypatch.setitem(ENCODINGS, "r50k_base", encoding)
    path = write_ranks(tmp_path / "r50k_base.tiktoken", gpt2_ranks)
    from_ranks = load_tokenizer(f"tiktoken:{path}")
    from_merges = load_tokenizer(f"tiktoken:{gpt2_path}")
    assert from_ranks.fingerprint == from_merges.fingerprint
    assert ids(from_ranks, SENTENCES[1]) == ids(from_merges, SENTENCES[1])


def write_ranks(path: Path, ranks: Any) -> Path:
    lines = [base64.b64encode(piece) + b" %d" % rank for piece, rank in ranks.items()]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def test_a_name_and_its_file_are_the_same_model(
    gpt2_path: Path, gpt2_ranks: Ranks, monkeypatch: Any
) -> None:
    published = tiktoken.Encoding(
        "gpt2",
        pat_str=ENCODINGS["gpt2"].pattern,
        mergeable_ranks=gpt2_ranks,
        special_tokens={"<|endoftext|>": len(gpt2_ranks)},
    )
    monkeypatch.setattr(tiktoken, "get_encoding", {"gpt2": published}.__getitem__)
    named, from_file = load_tokenizer("tiktoken:gpt2"), load_tokenizer(f"tiktoken:{gpt2_path}")
    assert named.fingerprint == from_file.fingerprint


def test_gpt2_of_openai() -> None:
    tokenizer = load_tokenizer(f"tiktoken:{shared('tokenizers/gpt2-merges.txt')}", fast=False)
    assert (tokenizer.pieces, tokenizer.vocabulary_size) == (50257, 50304)
    assert ids(tokenizer, "Hello world") == [15496, 995]
    assert ids(tokenizer, "a<|endoftext|>b") == [64, 27, 91, 437, 1659, 5239, 91, 29, 65]
    table = tokenizer.vocabulary()
    assert table["bytes"][198].as_py() == b"\n"
    assert table["sentence_end"][198].as_py()
    assert table["bytes"][50256].as_py() == b"<|endoftext|>"


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_published_patterns(name: str, monkeypatch: Any) -> None:
    # The ranks are elsewhere; all else is read off tiktoken's own definition.
    public = pytest.importorskip("tiktoken_ext.openai_public")
    monkeypatch.setattr(public, "load_tiktoken_bpe", lambda *_, **__: {})
    definition = getattr(public, name)()
    encoding = ENCODINGS[name]
    assert definition["pat_str"] == encoding.pattern
    assert definition["special_tokens"]["<|endoftext|>"] == encoding.end_of_text
    assert max(definition["special_tokens"].values()) + 1 == encoding.size


def test_rank_file_of_unknown_name(tmp_path: Path) -> None:
    path = write_ranks(tmp_path / "mine.tiktoken", {b"a": 0})
    with pytest.raises(UserError, match=r"has to be one of gpt2\.tiktoken, .*hf:tokenizer\.json"):
        load_tokenizer(f"tiktoken:{path}")


def test_a_file_that_lacks_its_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ranks = {bytes([b]): b for b in range(256)}
    load_tokenizer(f"tiktoken:{write_ranks(tmp_path / 'r50k_base.tiktoken', ranks)}")
    assert "has 256 pieces, and not 50,257 as the published file: is it whole?" in caplog.text


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        ({bytes([b]): b for b in range(255)}, "has pieces for 255 of 256 bytes"),
        ({bytes([b]): b // 2 for b in range(256)}, "has ids twice"),
        ({**{bytes([b]): b for b in range(256)}, b"ab": 50256}, r"with the id of <\|endoftext\|>"),
        ({**{bytes([b]): b for b in range(256)}, b"ab": 60000}, "or ids above 50256"),
    ],
)
def test_damaged_ranks(tmp_path: Path, ranks: dict[bytes, int], message: str) -> None:
    path = write_ranks(tmp_path / "r50k_base.tiktoken", ranks)
    with pytest.raises(UserError, match=message):
        load_tokenizer(f"tiktoken:{path}")


def test_merges_without_vocabulary(gpt2_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "merges.txt"
    path.write_bytes(gpt2_path.read_bytes())
    with pytest.raises(
        UserError, match=r"merges\.txt needs its vocabulary .*vocab\.json is missing"
    ):
        load_tokenizer(f"tiktoken:{path}")
    vocabulary = json.loads(gpt2_path.with_name("tiny-vocab.json").read_text())
    vocabulary["!"], vocabulary["a"] = vocabulary["a"], vocabulary["!"]
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    with pytest.raises(UserError, match=r"does not number the merges .*hf:tokenizer\.json"):
        load_tokenizer(f"tiktoken:{path}")


def test_encoding_that_cannot_be_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(name: str) -> None:
        raise ConnectionError(f"no route to {name}")

    monkeypatch.setattr(tiktoken, "get_encoding", offline)
    with pytest.raises(
        UserError, match=r"no route to gpt2.*TIKTOKEN_CACHE_DIR.*PATH/gpt2\.tiktoken"
    ):
        load_tokenizer("tiktoken:gpt2")


def test_byte_alphabet_is_gpt2s() -> None:
    alphabet = byte_alphabet()
    assert sorted(alphabet.values()) == list(range(256))
    assert set(alphabet) == set(pre_tokenizers.ByteLevel.alphabet())
    assert (alphabet["!"], alphabet["Ġ"], alphabet["Ċ"]) == (33, 32, 10)


def test_merges_are_found_again_in_ranks(
    gpt2_ranks: Ranks, byte_level: tokenizers.Tokenizer
) -> None:
    alphabet = byte_alphabet()
    written = json.loads(byte_level.to_str())["model"]["merges"]
    pairs = [tuple(bytes(alphabet[c] for c in part) for part in pair) for pair in written]
    assert len(pairs) == 400 - 256
    assert list(merges(gpt2_ranks)) == pairs


def test_ranks_that_are_no_merges_are_refused() -> None:
    ranks = {bytes([b]): b for b in range(256)} | {b"abc": 256}
    with pytest.raises(ValueError, match="no two pieces of lower rank than 256 make b'abc'"):
        list(merges(ranks))


@pytest.fixture
def fastokens() -> None:
    pytest.importorskip("fastokens", reason="the fast engine is optional")


@pytest.mark.usefixtures("fastokens")
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


@pytest.mark.usefixtures("fastokens")
@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_scanned_patterns_are_equal(name: str, gpt2_ranks: Ranks, tmp_path: Path) -> None:
    lines = write_ranks(tmp_path / "ranks", gpt2_ranks).read_bytes()
    content = ENCODINGS[name].pattern.encode() + b"\n" + lines
    end = len(gpt2_ranks)
    model = restore_tiktoken(content, name=name, end_of_text=end, size=end + 1)
    assert model.engine.startswith("fastokens ")


@pytest.mark.usefixtures("fastokens")
def test_an_engine_that_differs_is_refused(
    gpt2_path: Path,
    gpt2_ranks: Ranks,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    swapped = {**gpt2_ranks, b"a": gpt2_ranks[b"b"], b"b": gpt2_ranks[b"a"]}
    monkeypatch.setattr(bpe, "gpt2_json", lambda _: gpt2_json(swapped))
    with caplog.at_level(logging.WARNING):
        tokenizer = load_tokenizer(f"tiktoken:{gpt2_path}")
    assert tokenizer.engine.startswith("tiktoken ")
    assert "fastokens" in caplog.text
    assert "for 'a' it gives" in caplog.text


@pytest.mark.usefixtures("fastokens")
def test_an_engine_that_fails_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    reference: Any = None  # never reached
    with caplog.at_level(logging.WARNING):
        assert fastest(lambda: fast_from_json("{}"), reference, engine="x") == (None, "x")
    assert "fastokens" in caplog.text
    assert "x takes its place" in caplog.text
