import json
from pathlib import Path

import pytest
import sentencepiece

from pipelines.tokenizers.command_tokens import sentencepiece_commands
from pipelines.tokenizers.tokenizer import load_tokenizer
from tests.pipelines.tokenizers.texts import ids, shared
from tests.pipelines.tokenizers.trained import SENTENCES, reference, train


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
