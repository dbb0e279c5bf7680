import base64
import dataclasses
import io
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import tiktoken
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, trainers

from pipelines.tokenizers import fast_bpe
from pipelines.tokenizers import tiktoken as tiktoken_tokens
from pipelines.tokenizers.byte_bpe import byte_alphabet, gpt2_json, merges
from pipelines.tokenizers.command_tokens import (
    behind_byte_bpe,
    behind_sentencepiece,
    behind_wordpiece,
)
from pipelines.tokenizers.sentencepiece import disarmed
from pipelines.tokenizers.tokenizer import Tokenizer, load_tokenizer
from shards.errors import UserError
from shards.vocabulary import Vocabulary

SHARED = Path(__file__).parents[4] / "shared" / "data"
SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and the dog does not mind.",
    "第一行。第二行！人工智能正在改变我们的生活方式，也带来了新的问题。",
    "don't you'll I'm 12 1234 x2y3 {'a': [1]} <|endoftext|> [MASK]",
]
AWKWARD = st.lists(
    st.sampled_from(
        ["the ", "dog", "'s", "'ll", " ", "  ", "\n", "\t", "1", "234", "行", "人工智能", "。", "é",
         "e\u0301", "\x00", "👨\u200d👩", "<|endoftext|>", "[MASK]", "<s>", "</s>", "<n>", "<unk>"]
    ),
    max_size=30,
).map("".join)  # fmt: skip


def shared(path: str) -> Path:
    if not (SHARED / path).exists():
        pytest.skip(f"{SHARED / path} is not here")
    return SHARED / path


@pytest.fixture(scope="session")
def models_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokenizers")


@pytest.fixture(scope="session")
def spm_path(models_path: Path) -> Path:
    sink = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 20),
        model_writer=sink,
        vocab_size=400,
        model_type="bpe",
        byte_fallback=True,
        user_defined_symbols=["<n>", "[MASK]", "\n"],
        control_symbols=["[gMASK]"],
        normalization_rule_name="identity",
        minloglevel=2,
    )
    path = models_path / "tiny.model"
    path.write_bytes(sink.getvalue())
    return path


@pytest.fixture(scope="session")
def byte_level() -> tokenizers.Tokenizer:
    library = tokenizers.Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    library.train_from_iterator(SENTENCES, trainer)
    return library


@pytest.fixture(scope="session")
def hf_path(models_path: Path, byte_level: tokenizers.Tokenizer) -> Path:
    library = tokenizers.Tokenizer.from_str(byte_level.to_str())
    library.add_special_tokens(["<|endoftext|>", "<|im_start|>"])
    library.enable_truncation(4)
    library.enable_padding(length=8)
    path = models_path / "tokenizer.json"
    library.save(str(path))
    return path


@pytest.fixture(scope="session")
def gpt2_path(models_path: Path, byte_level: tokenizers.Tokenizer) -> Path:
    """GPT-2's two files: bytes in its own order, then the merges."""
    description = json.loads(byte_level.to_str())
    pieces = [*byte_alphabet(), *("".join(pair) for pair in description["model"]["merges"])]
    lines = ["#version: 0.2", *(" ".join(pair) for pair in description["model"]["merges"]), ""]
    path = models_path / "tiny-merges.txt"
    path.write_text("\n".join(lines), "utf-8")
    vocabulary = {piece: i for i, piece in enumerate([*pieces, "<|endoftext|>"])}
    (models_path / "tiny-vocab.json").write_text(json.dumps(vocabulary))
    return path


def bert(path: Path, words: Sequence[str]) -> Path:
    vocabulary = {word: i for i, word in enumerate(words)}
    library = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.WordPiece()
    library.save(str(path))
    return path


@pytest.fixture(scope="session")
def bert_path(models_path: Path) -> Path:
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "the",
        "dog",
        "##s",
        "##gy",
        "[",
        "]",
        ".",
    ]
    return bert(models_path / "bert.json", [*words, "mask"])


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    tokens, lengths, failures = tokenizer.encode_batch([text])
    assert failures == []
    assert lengths.tolist() == [len(tokens)]
    return list(map(int, tokens))


def decode(tokenizer: Tokenizer, text: str) -> str:
    return Vocabulary(tokenizer.vocabulary()).decode(np.array(ids(tokenizer, text)))


# Layouts.


def test_layouts_are_those_of_glm() -> None:
    gpt2 = behind_byte_bpe(50257, end_of_text=50256)
    assert (gpt2.total, gpt2.padded) == (50266, 50304)
    assert gpt2.ids == {
        "eos": 50256, "pad": 50256, "cls": 50259, "mask": 50260, "sep": 50261, "unk": 50262,
        "sop": 50257, "eop": 50258, "gmask": 50263, "smask": 50264, "dblock": 50265,
    }  # fmt: skip
    chinese = behind_sentencepiece(50000)
    assert (chinese.total, chinese.padded) == (50011, 50048)
    assert chinese.ids == {
        "eos": 50000, "pad": 50000, "cls": 50002, "mask": 50003, "sep": 50001, "unk": 50004,
        "sop": 50006, "eop": 50007, "gmask": 50009, "smask": 50008, "dblock": 50010,
    }  # fmt: skip
    own = {"pad": 0, "cls": 101, "mask": 103, "sep": 102, "unk": 100}
    uncased = behind_wordpiece(30522, own=own)
    assert (uncased.total, uncased.padded) == (30527, 30592)
    assert uncased.ids == {
        **own, "eos": 0, "sop": 30522, "eop": 30523, "gmask": 30524, "smask": 30525,
        "dblock": 30526,
    }  # fmt: skip


# Any kind.


@pytest.fixture(params=["sentencepiece", "tiktoken", "hf", "bert"])
def spec(request: pytest.FixtureRequest) -> str:
    kind, path = {
        "sentencepiece": ("sentencepiece", "spm_path"),
        "tiktoken": ("tiktoken", "gpt2_path"),
        "hf": ("hf", "hf_path"),
        "bert": ("hf", "bert_path"),
    }[request.param]
    return f"{kind}:{request.getfixturevalue(path)}"


@pytest.fixture
def tokenizer(spec: str) -> Tokenizer:
    return load_tokenizer(spec)


def test_batches_are_texts_one_by_one(tokenizer: Tokenizer) -> None:
    texts = ["the dog", "", "第一行", "the dogs."]
    tokens, lengths, failures = tokenizer.encode_batch(texts)
    assert tokens.dtype == tokenizer.dtype == np.uint16
    assert lengths.dtype == np.int64
    assert (len(lengths), int(lengths.sum()), failures) == (4, len(tokens), [])
    parts = np.split(tokens, np.cumsum(lengths)[:-1])
    assert [part.tolist() for part in parts] == [ids(tokenizer, text) for text in texts]


def test_no_texts(tokenizer: Tokenizer) -> None:
    tokens, lengths, failures = tokenizer.encode_batch([])
    assert (tokens.shape, tokens.dtype, lengths.shape, failures) == ((0,), np.uint16, (0,), [])


def test_special_strings_are_text(tokenizer: Tokenizer) -> None:
    table = tokenizer.vocabulary()
    special = np.flatnonzero(table["special"].to_numpy())
    names = [table["bytes"][i].as_py().decode() for i in special]
    assert "[MASK]" in names
    allowed = {tokenizer.special["unk"], 0}  # what WordPiece and SentencePiece give for the unknown
    for name in filter(None, names):
        assert set(ids(tokenizer, f"a {name} b{name}")) & (set(special.tolist()) - allowed) == set()


def test_vocabulary(tokenizer: Tokenizer) -> None:
    table = tokenizer.vocabulary()
    assert table.num_rows == tokenizer.vocabulary_size
    assert tokenizer.vocabulary_size % 128 == 0
    for role in (
        "eos",
        "pad",
        "cls",
        "mask",
        "sep",
        "unk",
        "sop",
        "eop",
        "gmask",
        "smask",
        "dblock",
    ):
        i = tokenizer.special[role]
        assert table["special"][i].as_py()
        assert table["bytes"][i].as_py()
        assert not table["sentence_end"][i].as_py()
    last = table.slice(max(tokenizer.special.values()) + 1)
    assert last.num_rows > 0
    assert set(last["bytes"].to_pylist()) == {b""}
    assert all(last["special"].to_pylist())


def test_reloading_changes_nothing(spec: str, tokenizer: Tokenizer) -> None:
    again = load_tokenizer(spec)
    assert again.fingerprint == tokenizer.fingerprint
    assert len(again.fingerprint) == 64
    assert again.vocabulary() == tokenizer.vocabulary()


def test_fingerprints_tell_models_apart(spm_path: Path, tmp_path: Path) -> None:
    content = bytearray(spm_path.read_bytes())
    at = content.index(b"dog")
    content[at : at + 3] = b"cat"
    path = tmp_path / "other.model"
    path.write_bytes(content)
    assert fingerprint(path) != fingerprint(spm_path)


def fingerprint(path: Path) -> str:
    return load_tokenizer(f"sentencepiece:{path}").fingerprint


def test_failures_cost_their_text_only(tokenizer: Tokenizer) -> None:
    class PanicException(BaseException):
        """As pyo3's: no Exception."""

    def panicking(texts: Sequence[str]) -> Any:
        if "bad" in texts:
            raise PanicException("capacity overflow")
        return tokenizer._model.encode(texts)

    fragile = Tokenizer(dataclasses.replace(tokenizer._model, encode=panicking))
    tokens, lengths, failures = fragile.encode_batch(["the dog", "bad", "the"])
    assert failures == [(1, "PanicException: capacity overflow")]
    assert tokens.dtype == tokenizer.dtype
    assert lengths.tolist() == [len(ids(tokenizer, "the dog")), 0, len(ids(tokenizer, "the"))]
    assert tokens.tolist() == ids(tokenizer, "the dog") + ids(tokenizer, "the")


def test_interrupts_are_no_failures(tokenizer: Tokenizer) -> None:
    def interrupted(_: Sequence[str]) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Tokenizer(dataclasses.replace(tokenizer._model, encode=interrupted)).encode_batch(["a"])


# SentencePiece.


def test_sentencepiece_bytes_decode(spm_path: Path) -> None:
    tokenizer = load_tokenizer(f"sentencepiece:{spm_path}")
    text = "The dog\n第一行。 ☂ <n>[MASK]"
    assert decode(tokenizer, text) == f" {text}"
    assert tokenizer.engine.startswith("sentencepiece ")
    assert (tokenizer.pieces, tokenizer.special["eos"], tokenizer.vocabulary_size) == (
        400,
        400,
        512,
    )


def test_sentencepiece_special_flags(spm_path: Path) -> None:
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


@settings(max_examples=100, deadline=None)
@given(text=AWKWARD)
def test_disarming_changes_no_other_id(spm_path: Path, text: str) -> None:
    armed = sentencepiece.SentencePieceProcessor(model_file=str(spm_path))
    content = spm_path.read_bytes()
    safe = sentencepiece.SentencePieceProcessor(model_proto=disarmed(content))
    calm = text.replace("<n>", "").replace("[MASK]", "")
    assert armed.encode(calm) == safe.encode(calm)
    assert not {armed.piece_to_id("<n>"), armed.piece_to_id("[MASK]")} & set(safe.encode(text))
    assert [armed.id_to_piece(i) for i in range(400)] == [safe.id_to_piece(i) for i in range(400)]


def test_disarming_changes_one_byte_a_symbol(spm_path: Path) -> None:
    content = spm_path.read_bytes()
    changed = disarmed(content)
    assert len(changed) == len(content)
    differing = [(old, new) for old, new in zip(content, changed, strict=True) if old != new]
    assert differing == [(4, 3), (4, 3)]  # user-defined to control, for <n> and [MASK]


def test_glm_chinese_model() -> None:
    path = shared("tokenizers/cog-pretrain.model")
    tokenizer = load_tokenizer(f"sentencepiece:{path}")
    assert (tokenizer.pieces, tokenizer.vocabulary_size) == (50000, 50048)
    assert tokenizer.special == dict(behind_sentencepiece(50000).ids)
    assert ids(tokenizer, "第一行\n第二行") == [633, 43443, 437, 43443]
    assert 3 not in ids(tokenizer, "a<n>b")
    reference = sentencepiece.SentencePieceProcessor(model_file=str(path))
    texts = bench("zh") + bench("en")
    assert len(texts) == 300
    assert [t for t in texts if "<n>" not in t and ids(tokenizer, t) != reference.encode(t)] == []


def bench(language: str) -> list[str]:
    zstandard = pytest.importorskip("zstandard")
    path = shared(f"bench/{language}.jsonl.zst")
    with zstandard.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        return [json.loads(line)["text"] for line, _ in zip(lines, range(150), strict=False)]


# tiktoken.


def test_byte_alphabet_is_gpt2s() -> None:
    alphabet = byte_alphabet()
    assert sorted(alphabet.values()) == list(range(256))
    assert set(alphabet) == set(pre_tokenizers.ByteLevel.alphabet())
    assert (alphabet["!"], alphabet["Ġ"], alphabet["Ċ"]) == (33, 32, 10)


def test_gpt2_files(gpt2_path: Path) -> None:
    tokenizer = load_tokenizer(f"tiktoken:{gpt2_path}")
    end = tokenizer.pieces - 1
    assert tokenizer.special == dict(behind_byte_bpe(end + 1, end_of_text=end).ids)
    for text in SENTENCES:
        assert decode(tokenizer, text) == text


def test_rank_file_is_the_same_model(gpt2_path: Path, tmp_path: Path, monkeypatch: Any) -> None:
    ranks, encoding = tiktoken_tokens._merges_file(gpt2_path)
    monkeypatch.setitem(tiktoken_tokens.ENCODINGS, "r50k_base", encoding)
    path = write_ranks(tmp_path / "r50k_base.tiktoken", ranks)
    by_ranks, by_merges = (
        load_tokenizer(f"tiktoken:{path}"),
        load_tokenizer(f"tiktoken:{gpt2_path}"),
    )
    assert by_ranks.fingerprint == by_merges.fingerprint
    assert ids(by_ranks, SENTENCES[1]) == ids(by_merges, SENTENCES[1])


def write_ranks(path: Path, ranks: Any) -> Path:
    lines = [base64.b64encode(piece) + b" %d" % rank for piece, rank in ranks.items()]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def test_a_name_and_its_file_are_the_same_model(gpt2_path: Path, monkeypatch: Any) -> None:
    ranks, encoding = tiktoken_tokens._merges_file(gpt2_path)
    published = tiktoken.Encoding(
        "gpt2",
        pat_str=encoding.pattern,
        mergeable_ranks=dict(ranks),
        special_tokens={"<|endoftext|>": encoding.end_of_text},
    )
    monkeypatch.setattr(tiktoken, "get_encoding", {"gpt2": published}.__getitem__)
    by_name, by_file = load_tokenizer("tiktoken:gpt2"), load_tokenizer(f"tiktoken:{gpt2_path}")
    assert by_name.fingerprint == by_file.fingerprint


def test_merges_are_found_again_in_ranks(gpt2_path: Path, byte_level: tokenizers.Tokenizer) -> None:
    ranks, _ = tiktoken_tokens._merges_file(gpt2_path)
    alphabet = byte_alphabet()
    written = json.loads(byte_level.to_str())["model"]["merges"]
    pairs = [tuple(bytes(alphabet[c] for c in part) for part in pair) for pair in written]
    assert len(pairs) == 400 - 256
    assert list(merges(ranks)) == pairs


def test_ranks_that_are_no_merges_are_refused() -> None:
    ranks = {bytes([b]): b for b in range(256)} | {b"abc": 256}
    with pytest.raises(ValueError, match="no two pieces of lower rank than 256 make b'abc'"):
        list(merges(ranks))


def test_gpt2_of_openai() -> None:
    tokenizer = load_tokenizer(f"tiktoken:{shared('tokenizers/gpt2-merges.txt')}", fast=False)
    assert (tokenizer.pieces, tokenizer.vocabulary_size) == (50257, 50304)
    assert ids(tokenizer, "Hello world") == [15496, 995]
    assert ids(tokenizer, "a<|endoftext|>b") == [64, 27, 91, 437, 1659, 5239, 91, 29, 65]
    table = tokenizer.vocabulary()
    assert table["bytes"][198].as_py() == b"\n"
    assert table["sentence_end"][198].as_py()
    assert table["bytes"][50256].as_py() == b"<|endoftext|>"


def test_padding_beyond_uint16() -> None:
    commands = behind_byte_bpe(100277, end_of_text=100257)
    assert commands.padded == 100352


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_published_patterns(name: str, monkeypatch: Any) -> None:
    # The ranks are elsewhere; all else is read off tiktoken's own definition.
    public = pytest.importorskip("tiktoken_ext.openai_public")
    monkeypatch.setattr(public, "load_tiktoken_bpe", lambda *_, **__: {})
    definition = getattr(public, name)()
    encoding = tiktoken_tokens.ENCODINGS[name]
    assert definition["pat_str"] == encoding.pattern
    assert definition["special_tokens"]["<|endoftext|>"] == encoding.end_of_text
    assert max(definition["special_tokens"].values()) + 1 == encoding.size


# The fast engine.


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
    @given(AWKWARD)
    def check(text: str) -> None:
        assert ids(fast, text) == ids(slow, text)

    check()


@pytest.mark.usefixtures("fastokens")
@pytest.mark.parametrize("pattern", ["_CL100K", "_O200K"])
def test_scanned_patterns_are_equal(pattern: str, gpt2_path: Path) -> None:
    ranks, encoding = tiktoken_tokens._merges_file(gpt2_path)
    encoding = tiktoken_tokens.Encoding(
        pattern=getattr(tiktoken_tokens, pattern),
        end_of_text=encoding.end_of_text,
        size=encoding.size,
    )
    assert tiktoken_tokens._model(ranks, encoding, fast=True).engine.startswith("fastokens ")


@pytest.mark.usefixtures("fastokens")
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


@pytest.mark.usefixtures("fastokens")
def test_an_engine_that_fails_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert fast_bpe.agreeing(lambda: fast_bpe.fast_from_json("{}"), None, name="x") is None  # type: ignore[arg-type]  # never reached
    assert "it fails" in caplog.text


# Hugging Face.


def test_hf_byte_level(hf_path: Path) -> None:
    tokenizer = load_tokenizer(f"hf:{hf_path}")
    assert tokenizer.pieces == 402
    assert tokenizer.special == dict(behind_byte_bpe(402, end_of_text=400).ids)
    text = SENTENCES[0]
    assert len(ids(tokenizer, text)) > 8, "truncation and padding of the file do not count"
    assert decode(tokenizer, text) == text


def test_hf_end_token_that_is_not_marked_special(hf_path: Path, tmp_path: Path) -> None:
    description = json.loads(hf_path.read_text())
    for token in description["added_tokens"]:
        token["special"] = False
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(description))
    tokenizer = load_tokenizer(f"hf:{path}")
    assert 400 not in ids(tokenizer, "a<|endoftext|>b")
    assert 401 in ids(tokenizer, "a<|im_start|>b"), "other added tokens are vocabulary"


def test_hf_bert(bert_path: Path) -> None:
    tokenizer = load_tokenizer(f"hf:{bert_path}")
    own = {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}
    assert tokenizer.special == dict(behind_wordpiece(13, own=own).ids)
    assert tokenizer.engine.startswith("tokenizers ")
    assert ids(tokenizer, "the dogs.") == [5, 6, 7, 11]
    assert decode(tokenizer, "the dogs.") == " the dogs ."


def test_hf_bert_uncased(tmp_path: Path) -> None:
    words = shared("tokenizers/bert-base-uncased-vocab.txt").read_text("utf-8").splitlines()
    tokenizer = load_tokenizer(f"hf:{bert(tmp_path / 'bert.json', words)}")
    assert (tokenizer.pieces, tokenizer.vocabulary_size) == (30522, 30592)
    assert [tokenizer.special[role] for role in ("eos", "cls", "mask", "sep", "unk")] == [
        0, 101, 103, 102, 100,
    ]  # fmt: skip
    assert 103 not in ids(tokenizer, "a [MASK] b")


def test_hf_with_byte_fallback(tmp_path: Path) -> None:
    pieces = ["<unk>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "\u2581", "a", "\u2581a"]
    library = tokenizers.Tokenizer(
        models.BPE(
            {piece: i for i, piece in enumerate(pieces)},
            [("\u2581", "a")],
            byte_fallback=True,
            unk_token="<unk>",
        )
    )
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    library.add_special_tokens(["</s>"])
    path = tmp_path / "tokenizer.json"
    library.save(str(path))
    tokenizer = load_tokenizer(f"hf:{path}")
    assert tokenizer.special["eos"] == 1
    assert decode(tokenizer, "a行\n") == " a行\n"


def test_injection_is_refused(tmp_path: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the"]
    library = tokenizers.Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]")
    )
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    path = tmp_path / "tokenizer.json"
    library.save(str(path))
    with pytest.raises(UserError, match=r'turns the text "\[PAD\]" into the special token 0'):
        load_tokenizer(f"hf:{path}")


# What people get wrong.


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", r'--tokenizer "": write sentencepiece:PATH, .*train_tokenizer'),
        ("gpt2", r"tiktoken:NAME or tiktoken:PATH, hf:PATH\. No tokenizer yet\?"),
        ("glm.model", r'"glm\.model": write sentencepiece:glm\.model\.'),
        ("spm:glm.model", r"write sentencepiece:PATH"),
        ("sentencepiece:", r"write sentencepiece:PATH"),
        ("sentencepiece:/no/glm.model", r"there is no file /no/glm\.model\. .*train_tokenizer"),
        ("hf:/no/tokenizer.json", r"there is no file /no/tokenizer\.json"),
        ("hf:/", r"there is no file /"),
        ("tiktoken:gpt5", r"no such file, and tiktoken knows no encoding .* gpt2, "),
        ("tiktoken:/", r"expected is a file NAME\.tiktoken, or GPT-2's"),
    ],
)
def test_wrong_specs(spec: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_tokenizer(spec)


GARBAGE = [b"", b"not a model", b"{}", b"\x0a\xff\xff\xff\xff\x0f", b"\x0b\x00", b"[1, 2]", b"\x80"]


@pytest.mark.parametrize("content", GARBAGE)
@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (
            "sentencepiece",
            "x.model",
            r"x\.model is no SentencePiece model \(.+\): give the \.model file",
        ),
        ("hf", "tokenizer.json", r"tokenizer\.json (is no tokenizer\.json|has no vocabulary)"),
        ("tiktoken", "r50k_base.tiktoken", r"r50k_base\.tiktoken (is no file|has 0 of 256)"),
        ("tiktoken", "x-merges.txt", r"x-vocab\.json (are not GPT-2's|does not number)"),
    ],
)
def test_files_that_are_something_else(
    tmp_path: Path, content: bytes, kind: str, name: str, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "x-vocab.json").write_bytes(content)
    with pytest.raises(UserError, match=message):
        load_tokenizer(f"{kind}:{tmp_path / name}")


def test_cut_model(spm_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.model"
    path.write_bytes(spm_path.read_bytes()[:-100])
    with pytest.raises(UserError, match=r"cut\.model is no SentencePiece model"):
        load_tokenizer(f"sentencepiece:{path}")


def test_rank_file_of_unknown_name(tmp_path: Path) -> None:
    path = write_ranks(tmp_path / "mine.tiktoken", {b"a": 0})
    with pytest.raises(UserError, match=r"has to be one of gpt2\.tiktoken, .*hf:tokenizer\.json"):
        load_tokenizer(f"tiktoken:{path}")


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        ({bytes([b]): b for b in range(255)}, "has 255 of 256 bytes"),
        ({bytes([b]): b // 2 for b in range(256)}, "gives ids twice"),
        ({**{bytes([b]): b for b in range(256)}, b"ab": 50256}, r"in the place of <\|endoftext\|>"),
        ({**{bytes([b]): b for b in range(256)}, b"ab": 60000}, "or above 50256"),
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


def test_hf_without_end(byte_level: tokenizers.Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    byte_level.save(str(path))
    with pytest.raises(
        UserError, match=r"no token to end a document .*<\|endoftext\|>, </s>, .*\[PAD\]"
    ):
        load_tokenizer(f"hf:{path}")


def test_hf_that_the_library_refuses(hf_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    description = json.loads(hf_path.read_text())
    description["model"]["type"] = "Oracle"
    path.write_text(json.dumps(description))
    with pytest.raises(UserError, match=r"tokenizer\.json: tokenizers cannot read it"):
        load_tokenizer(f"hf:{path}")
