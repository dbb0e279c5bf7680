import json
from pathlib import Path

import pytest
import sentencepiece

from pipelines.tokenizers import sentencepiece as loading
from pipelines.tokenizers.command_tokens import sentencepiece_commands
from pipelines.tokenizers.tokenizer import load_tokenizer
from shards.errors import UserError
from tests.pipelines.tokenizers.texts import decode, ids, shared
from tests.pipelines.tokenizers.trained import SENTENCES, reference, train


def test_bytes_decode(spm_path: Path) -> None:
    tokenizer = load_tokenizer(f"sentencepiece:{spm_path}")
    text = "The dog\n第一行。 ☂ <n>[MASK]"
    assert decode(tokenizer, text) == f" {text}"
    assert tokenizer.engine.startswith("sentencepiece ")
    sizes = tokenizer.pieces, tokenizer.special["eos"], tokenizer.vocabulary_size
    assert sizes == (400, 400, 512)


def test_special_flags(spm_path: Path) -> None:
    table = load_tokenizer(f"sentencepiece:{spm_path}").vocabulary()
    rows = {row["bytes"]: row for row in table.slice(0, 400).to_pylist()}
    for name in (b"<unk>", b"<s>", b"</s>", b"<n>", b"[gMASK]"):
        assert rows[name]["special"]
    assert not rows[b"\n"]["special"]
    assert rows[b"\n"]["sentence_end"]
    assert rows["。".encode()]["sentence_end"]
    assert not rows[b"\xe2"]["special"]
    assert table["bytes"][405].as_py() == b""  # the hole of GLM's layout
    assert table["special"][405].as_py()


def test_loading_by_choice(
    tmp_path: Path, nmt_nfkc: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tiny.model"
    path.write_bytes(nmt_nfkc)
    fast, slow = (
        load_tokenizer(f"sentencepiece:{path}", compiled=choice) for choice in (True, False)
    )
    assert fast.engine == slow.engine
    assert fast.fingerprint == slow.fingerprint
    assert fast.encode_batch(SENTENCES)[0].tolist() == slow.encode_batch(SENTENCES)[0].tolist()
    assert fast.encode_batch(["a", "\ud800"])[2] == slow.encode_batch(["a", "\ud800"])[2] != []
    asked: list[bytes] = []
    monkeypatch.setattr(loading, "piece_encoder", lambda content, _: asked.append(content))
    for choice in (False, True):
        load_tokenizer(f"sentencepiece:{path}", compiled=choice)
        assert asked == [nmt_nfkc] * choice


def test_unigram(tmp_path: Path) -> None:
    content = train(model_type="unigram", vocab_size=200, hard_vocab_limit=False)
    path = tmp_path / "unigram.model"
    path.write_bytes(content)
    tokens, _, failures = load_tokenizer(f"sentencepiece:{path}").encode_batch(SENTENCES)
    assert tokens.tolist() == reference(content)(SENTENCES)[0].tolist()
    assert failures == []


def test_glm_chinese_model() -> None:
    path = shared("tokenizers/cog-pretrain.model")
    tokenizer = load_tokenizer(f"sentencepiece:{path}", fast=False)
    assert (tokenizer.pieces, tokenizer.vocabulary_size) == (50000, 50048)
    assert tokenizer.special == dict(sentencepiece_commands(50000).ids)
    assert ids(tokenizer, "第一行\n第二行") == [633, 43443, 437, 43443]
    assert 3 not in ids(tokenizer, "a<n>b")
    reference = sentencepiece.SentencePieceProcessor(model_file=str(path))
    texts = bench("zh") + bench("en")
    assert len(texts) == 120
    assert [t for t in texts if "<n>" not in t and ids(tokenizer, t) != reference.encode(t)] == []


def bench(language: str) -> list[str]:
    zstandard = pytest.importorskip("zstandard")
    path = shared(f"bench/{language}.jsonl.zst")
    with zstandard.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        return [json.loads(line)["text"] for line, _ in zip(lines, range(60), strict=False)]


def test_cut_model(spm_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.model"
    path.write_bytes(spm_path.read_bytes()[:-100])
    with pytest.raises(UserError, match=r"cut\.model is no SentencePiece model"):
        load_tokenizer(f"sentencepiece:{path}")
