import io
import itertools
import json
import logging
import random
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.tokenizers import fast_sentencepiece, part_bpe, parts
from pipelines.tokenizers.charsmap import rules
from pipelines.tokenizers.fast_sentencepiece import agreeing, fast_encoder
from pipelines.tokenizers.hash_index import HashIndex
from pipelines.tokenizers.model import Encode, flat
from pipelines.tokenizers.pair_table import NONE, NOTHING, PairTable
from pipelines.tokenizers.part_bpe import PartBpe
from pipelines.tokenizers.part_cache import PartCache
from pipelines.tokenizers.part_tables import ODD
from pipelines.tokenizers.parts import PartCutter
from pipelines.tokenizers.protobuf import field, fields
from pipelines.tokenizers.sentencepiece import disarmed
from pipelines.tokenizers.sentencepiece_model import CuttableModel, VocabularyPiece, cuttable
from pipelines.tokenizers.tokenizer import load_tokenizer

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "pipelines" / "sample"
COG = ROOT.parent / "shared" / "data" / "tokenizers" / "cog-pretrain.model"
SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and the dog does not mind at all.",
    "第一行。第二行！人工智能正在改变我们的生活方式，也带来了新的问题。哈哈哈哈",
    "don't you'll I'm 12 1234 x2y3 {'a': [1]} <|endoftext|> [MASK] ---- aaaa",
    "人工智能的问题，生活的方式；新的生活，新的问题。 the  dogs   jump    over",
]
AWKWARD = [
    *" \n\t　▁，。！ＡＢ１①㈱½ﬁ…—“”《》",
    *("  ", "   ", "\n\n", "\r\n", "\x00", "\x01", "\x7f", "\xa0", "\xad", "\u200b", "\u2028"),
    *("\ufeff", "\ufffd", "\u00a8", "\u00b4", "e\u0301", "\u0301", "A\u030a", "カ\u3099", "ｶﾞ"),
    *("\u1112\u1161\u11ab", "한국", "😀", "👨\u200d👩", "\U00020000", "\U0010fffd", "\ue000", "ﷺ"),
    *("<n>", "<s>", "</s>", "<unk>", "<0x41>", "[MASK]", "▁▁", "\u0340", "क\u093c", "Ж", "İ"),
    *("哈哈哈", "----", "aaaaa", "the dog", " the", "人工智能", "的问题", "生活方式的问题"),
]
KINDS: dict[str, dict[str, Any]] = {
    "nmt_nfkc": {},
    "identity": {
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "allow_whitespace_only_pieces": True,
        "byte_fallback": True,
        "vocab_size": 460,
    },
    "spaces within": {"split_by_whitespace": False},
    "folded": {"normalization_rule_name": "nfkc_cf", "remove_extra_whitespaces": False},
    "line breaks": {
        "normalization_rule_name": "identity",
        "user_defined_symbols": ["\n", "[MASK]"],
        "control_symbols": ["<n>"],
    },
}


def train(**changes: Any) -> bytes:
    sink = io.BytesIO()
    settings = {"vocab_size": 200, "model_type": "bpe", "minloglevel": 2, **changes}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 5), model_writer=sink, **settings
    )
    return disarmed(sink.getvalue())


def reference(content: bytes) -> Encode:
    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    return lambda texts: flat([processor.EncodeAsNumpy(text) for text in texts])


def model_of(content: bytes) -> CuttableModel:
    model = cuttable(content)
    assert model is not None
    return model


Both = tuple[Encode, Encode]


@pytest.fixture(scope="module")
def nmt_nfkc() -> bytes:
    return train()


@pytest.fixture(scope="module", params=KINDS)
def content(request: pytest.FixtureRequest) -> bytes:
    return train(**KINDS[request.param])


@pytest.fixture(scope="module")
def both(content: bytes) -> Both:
    fast = agreeing(content, reference(content))
    assert fast is not None
    return fast, reference(content)


@pytest.fixture(scope="module")
def sample() -> Both:
    content = disarmed((SAMPLE / "sample.model").read_bytes())
    fast = agreeing(content, reference(content))
    assert fast is not None
    return fast, reference(content)


def check(both: Both, texts: Sequence[str]) -> None:
    """Ids and lengths are the library's."""
    (tokens, lengths), (expected, expected_lengths) = (encode(texts) for encode in both)
    assert lengths.tolist() == expected_lengths.tolist()
    assert tokens.tolist() == expected.tolist()


def sample_texts() -> list[str]:
    found = []
    for path in sorted(SAMPLE.glob("*.json")):
        records = json.loads(path.read_text("utf-8"))
        rows = records if isinstance(records, list) else records["RECORDS"]
        found += [value for row in rows for value in row.values() if isinstance(value, str)]
    return found


# Equality with the library.

MIXED = st.lists(
    st.one_of(st.sampled_from(AWKWARD), st.text(st.characters(codec="utf-8"), max_size=6)),
    max_size=30,
).map("".join)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(MIXED, max_size=5))
def test_any_texts(both: Both, texts: list[str]) -> None:
    check(both, texts)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(MIXED, max_size=5))
def test_any_texts_by_the_sample_s_model(sample: Both, texts: list[str]) -> None:
    check(sample, texts)


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [""],
        ["", " ", "\n", "  ", "a", "", " a ", ""],
        ["☂☃", "☃", "a☂☃b☂ ☃ ☂☂"],
        ["\x00", "a\x00b", "\x00\x00"],
        ["the dog", "e\u0301", "the dog", "\u200b \u200b", "the"],
        ["▁", "▁a▁", "a ▁ b", " ▁"],
        ["<s>", "a</s>b", "[MASK]<n>\n\n<n>"],
        ["a" * 5000, "哈" * 3000, " " * 2000, "ab " * 1000, "\n" * 500],
        ["\U0010fffd", "a\U0010ffffb", "\U00020000\U00020001"],
    ],
)
def test_corner_cases(both: Both, texts: list[str]) -> None:
    check(both, texts)
    for text in texts:
        check(both, [text])


def test_pieces_beside_each_other(both: Both) -> None:
    chosen = random.Random(5)
    words = [word for text in SENTENCES for word in text.replace(" ", " | ").split("|")]
    texts = ["".join(chosen.choices(words + AWKWARD, k=chosen.randrange(40))) for _ in range(300)]
    check(both, texts)


def test_the_sample(sample: Both) -> None:
    texts = sample_texts()
    assert len(texts) > 100
    check(sample, texts)
    check(sample, texts)


@pytest.mark.skipif(not COG.exists(), reason=f"{COG} is not here")
def test_glm_s_model() -> None:
    content = disarmed(COG.read_bytes())
    fast = agreeing(content, reference(content))
    assert fast is not None
    chosen = random.Random(3)
    pieces = [piece.text.replace("▁", " ") for piece in model_of(content).pieces]
    mixed = [
        "".join(chosen.choices(pieces, k=30) + chosen.choices(AWKWARD, k=3)) for _ in range(99)
    ]
    mixed += ["".join(chosen.choices(pieces + AWKWARD * 99, k=20)) for _ in range(300)]
    check((fast, reference(content)), mixed + sample_texts())


# What it costs nothing to be right about: the cache, groups of texts, threads.


def test_a_small_cache_changes_nothing(nmt_nfkc: bytes) -> None:
    library = reference(nmt_nfkc)
    small = fast_encoder(model_of(nmt_nfkc), library, cache_bits=6)
    chosen = random.Random(1)
    for _ in range(200):
        words = [
            "".join(chosen.choices("abcdefgh人工智能", k=chosen.randrange(9))) for _ in range(8)
        ]
        check((small, library), [" ".join(words)])


def test_groups_change_nothing(nmt_nfkc: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    library = reference(nmt_nfkc)
    monkeypatch.setattr(fast_sentencepiece, "CHUNK_CHARS", 50)
    monkeypatch.setattr(fast_sentencepiece, "MAX_CHARS", 300)
    fast = fast_encoder(model_of(nmt_nfkc), library)
    check((fast, library), [*SENTENCES, "", *SENTENCES, " ".join(SENTENCES * 2), "the dog"])


def test_equal_hashes_change_nothing(nmt_nfkc: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_BASE", 1)  # then a hash does not tell the order of characters
    library = reference(nmt_nfkc)
    fast = fast_encoder(model_of(nmt_nfkc), library)
    for texts in (["quick"], ["kciuq"], ["quick", "ciukq"], ["quick", "the"]):
        check((fast, library), texts)


def test_threads_change_nothing(nmt_nfkc: bytes) -> None:
    library = reference(nmt_nfkc)
    fast = fast_encoder(model_of(nmt_nfkc), library, cache_bits=8)
    wrong = []

    def work(seed: int) -> None:
        chosen = random.Random(seed)
        for _ in range(40):
            text = " ".join("".join(chosen.choices("abcdefgh", k=6)) for _ in range(20))
            if fast([text])[0].tolist() != library([text])[0].tolist():
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_parts_that_were_seen_do_not_meet_the_library_again(
    nmt_nfkc: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = fast_encoder(model_of(nmt_nfkc), reference(nmt_nfkc))
    first = fast(SENTENCES)[0].tolist()
    assert first
    monkeypatch.setattr(fast_sentencepiece._PartEncoder, "_learn", None)
    assert fast([*SENTENCES[1:], SENTENCES[0]])[0].tolist() != first
    assert fast(SENTENCES)[0].tolist() == first


def test_half_a_surrogate_pair_fails_as_in_the_library(nmt_nfkc: bytes) -> None:
    library = reference(nmt_nfkc)
    with pytest.raises(RuntimeError) as expected:
        library(["a\ud800"])
    with pytest.raises(RuntimeError) as found:
        fast_encoder(model_of(nmt_nfkc), library)(["b", "a\ud800"])
    assert str(found.value) == str(expected.value)


# Which models.


def piece(text: str, **values: int) -> bytes:
    """A field of a model: a piece behind all others."""
    kind = field(3, values["kind"]) if "kind" in values else b""
    return field(1, field(1, text.encode()) + kind)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (field(2, field(3, 1)), "unigram"),
        (field(2, field(24, 1)), "spaces behind words"),
        (field(3, field(3, 0)), "no space in front"),
        (field(3, field(5, 0)), "spaces that are no pieces"),
        (piece("\n\n", kind=4), "a long user-defined symbol"),
        (piece("▁", kind=4), "a user-defined space"),
        (piece(" ", kind=4), "a user-defined space"),
        (piece("qq", kind=5), "an unused piece"),
        (piece("qq"), "equal scores"),
    ],
)
def test_other_models_are_the_library_s(nmt_nfkc: bytes, more: bytes, why: str) -> None:
    # No other piece has the default score, 0, but for the first one that was joined.
    assert cuttable(nmt_nfkc + piece("\n", kind=4) + piece("q", kind=1)) is not None
    assert cuttable(nmt_nfkc + more) is None, why
    assert agreeing(nmt_nfkc + more, reference(nmt_nfkc)) is None


def test_unigram(tmp_path: Path) -> None:
    content = train(model_type="unigram", vocab_size=200, hard_vocab_limit=False)
    path = tmp_path / "unigram.model"
    path.write_bytes(content)
    tokens, _, failures = load_tokenizer(f"sentencepiece:{path}").encode_batch(SENTENCES)
    assert tokens.tolist() == reference(content)(SENTENCES)[0].tolist()
    assert failures == []


def test_loading_by_choice(
    tmp_path: Path, nmt_nfkc: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tiny.model"
    path.write_bytes(nmt_nfkc)
    fast, slow = (load_tokenizer(f"sentencepiece:{path}", fast=choice) for choice in (True, False))
    assert fast.engine == slow.engine
    assert fast.fingerprint == slow.fingerprint
    assert fast.encode_batch(SENTENCES)[0].tolist() == slow.encode_batch(SENTENCES)[0].tolist()
    assert fast.encode_batch(["a", "\ud800"])[2] == slow.encode_batch(["a", "\ud800"])[2] != []
    monkeypatch.setattr(fast_sentencepiece._PartEncoder, "encode", None)
    assert [len(one.encode_batch(["a"])[2]) for one in (fast, slow)] == [1, 0]


def test_a_way_that_differs_is_refused(
    nmt_nfkc: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    joined = PartBpe.encode
    monkeypatch.setattr(
        PartBpe, "encode", lambda *given: (joined(*given)[0] ^ 1, joined(*given)[1])
    )
    with caplog.at_level(logging.WARNING):
        assert agreeing(nmt_nfkc, reference(nmt_nfkc)) is None
    assert "encodes whole texts: part by part, for " in caplog.text


def test_a_way_that_fails_is_refused(
    nmt_nfkc: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(PartBpe, "encode", None)
    with caplog.at_level(logging.WARNING):
        assert agreeing(nmt_nfkc, reference(nmt_nfkc)) is None
    assert "part by part, it fails (" in caplog.text


# Its parts.


def test_texts_are_cut_where_nothing_is_joined(nmt_nfkc: bytes) -> None:
    cutter = PartCutter(model_of(nmt_nfkc))
    cut = cutter.cut(*cutter.read(["The cat  sat。", "", " \n", "，好的\n"]))
    shown = [
        "".join(map(chr, cut.codes[start:end])) for start, end in itertools.pairwise(cut.starts)
    ]
    assert "".join(shown) == " The cat sat。 ,好的"
    assert {" The", " ", "s", "。", "好", "的"} <= set(shown)
    assert cut.texts.tolist() == [0, *[cut.texts[1]] * 3, len(shown)]
    assert len(cut.keys) == len(shown)


def test_cuts_are_between_pieces(content: bytes) -> None:
    model = model_of(content)
    cutter = PartCutter(model)
    lengths = [len(piece.text) for piece in model.pieces]
    assert max(lengths) > 3
    for piece in model.pieces:
        text = piece.text.replace("▁", " ")
        cut = cutter.cut(*cutter.read([f"。{text}。"]))
        # The piece stands behind a space and the first full stop.
        assert not set(cut.starts.tolist()) & set(range(3, 2 + len(text)))


def test_odd_characters(nmt_nfkc: bytes) -> None:
    reading = PartCutter(model_of(nmt_nfkc)).tables.reading
    assert [int(reading[ord(c)]) for c in "a，　\n人"] == [ord(c) for c in "a,  人"]
    for odd in (0, 1, 0x301, 0xA8, 0x3099, 0x10FFFD):
        assert reading[odd] == ODD


def test_rules_of_characters(nmt_nfkc: bytes) -> None:
    model = model_of(nmt_nfkc)
    assert len(model.rules.single) > 4000
    assert {0x301, 0x3099, 0x1161} <= model.rules.joining
    assert not {ord("a"), ord(" "), ord("的")} & model.rules.joining
    processor = sentencepiece.SentencePieceProcessor(model_proto=nmt_nfkc)
    checked = 0
    for code, text in list(model.rules.single.items())[::7]:
        assert processor.normalize(f"|{chr(code)}|") == f"▁|{text}|".replace(" ", "▁")
        checked += 1
    assert checked > 500
    assert rules(b"").single == {}


def test_joiners_are_all_of_them(nmt_nfkc: bytes) -> None:
    model = model_of(nmt_nfkc)
    processor = sentencepiece.SentencePieceProcessor(model_proto=nmt_nfkc)
    bases = "aAeoカハか한ᄒϓक" + "ΑΩ" + "\u0627"
    candidates = [*range(0x80, 0x3100, 3), *sorted(model.rules.joining)]
    whole = 0
    for code in candidates:
        alone = processor.normalize(f"|{chr(code)}|")[2:-1]
        together = [processor.normalize(f"|{base}{chr(code)}|")[2:-1] for base in bases]
        singly = [processor.normalize(f"|{base}|")[2:-1] + alone for base in bases]
        if together != singly:
            whole += 1
            assert code in model.rules.joining
    assert whole > 20


def test_byte_pair_encoding_of_parts() -> None:
    texts = ["a", "b", "c", "d", "ab", "bc", "abc", "cd", "aa", "aaa"]
    pieces = [
        VocabularyPiece(id=10 + i, text=text, score=float(-i), kind=1)
        for i, text in enumerate(texts)
    ]
    ids = {piece.text: piece.id for piece in pieces}
    cases = {
        "a": ["a"], "ab": ["ab"], "ba": ["b", "a"], "abc": ["abc"], "abcd": ["abc", "d"],
        "bcd": ["bc", "d"], "dcd": ["d", "cd"], "aaaa": ["aa", "aa"], "aaa": ["aaa"],
        "aaaaa": ["aa", "aaa"], "abcabcbcab": ["abc", "abc", "bc", "ab"],
    }  # fmt: skip
    letters = np.array([ids[letter] for case in cases for letter in case], np.int32)
    found, lengths = PartBpe(pieces).encode(letters, np.array([len(case) for case in cases]))
    expected = [[ids[piece] for piece in case] for case in cases.values()]
    assert found.tolist() == [i for case in expected for i in case]
    assert lengths.tolist() == [len(case) for case in expected]


def test_more_pieces_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [VocabularyPiece(id=i, text="a" * (i + 1), score=float(-i), kind=1) for i in range(9)]
    monkeypatch.setattr(part_bpe, "NONE", 7 << 4)
    with pytest.raises(ValueError, match="8 long pieces"):
        PartBpe(pieces)


def test_byte_pair_encoding_of_nothing() -> None:
    pieces = [VocabularyPiece(id=0, text="a", score=0.0, kind=1)]
    found, lengths = PartBpe(pieces).encode(np.empty(0, np.int32), np.empty(0, np.int64))
    assert (len(found), len(lengths)) == (0, 0)


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 40) | st.integers(0, NOTHING - 1), st.integers(0, 40)),
        st.integers(0, NONE - 1),
        max_size=300,
    )
)
def test_a_table_of_pairs(pairs: dict[tuple[int, int], int]) -> None:
    lefts, rights = np.array([*pairs], np.int64).reshape(-1, 2).T
    table = PairTable(lefts, rights, np.array([*pairs.values()], np.int64))
    assert table.find(lefts, rights).tolist() == [*pairs.values()]
    some = [*range(0, 41, 5), NOTHING]
    every = np.array([*itertools.product(some, some)]).T
    expected = [pairs.get((a, b), NONE) for a, b in every.T.tolist()]
    assert table.find(*every).tolist() == expected


def test_a_full_table_of_pairs() -> None:
    count = 30_000
    lefts, rights = np.divmod(np.arange(count), 97)
    table = PairTable(lefts, rights, np.arange(count))
    assert table.find(lefts, rights).tolist() == list(range(count))
    assert set(table.find(rights + 400, lefts).tolist()) == {NONE}
    with pytest.raises(ValueError, match=r"1048575 pieces or more"):
        PairTable(np.array([NOTHING]), np.array([0]), np.array([0]))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1), unique=True, max_size=64), st.integers(0, 64))
def test_an_index_finds_what_it_was_given(keys: list[int], at: int) -> None:
    index = HashIndex(bits=6)
    some, others = np.array(keys[:at], np.uint64), np.array(keys[at:], np.uint64)
    assert index.add(some).tolist() == list(range(1, len(some) + 1))
    assert index.find(others).tolist() == [0] * len(others)
    index.add(others)
    assert index.find(np.array(keys, np.uint64)).tolist() == list(range(1, len(keys) + 1))
    index.clear()
    assert not index.find(np.array(keys, np.uint64)).any()


def test_an_index_of_keys_for_one_place() -> None:
    # Multiples of the inverse of the spreading factor stay next to each other.
    inverse = pow(0x9E3779B97F4A7C15, -1, 1 << 64)
    keys = np.array([inverse * i % (1 << 64) for i in range(1, 60)], np.uint64)
    index = HashIndex(bits=6)
    index.add(keys)
    assert index.find(keys).tolist() == list(range(1, 60))


def test_a_cache_forgets_when_it_is_full() -> None:
    cache = PartCache(bits=4)
    letters = np.array([97, 98, 99], np.int32)
    for turn in range(20):
        assert cache.make_room(3)
        keys = np.array([1, 2, 3], np.uint64) + np.uint64(10 * turn)
        slots = cache.add(
            keys, texts=(letters, np.array([1, 1, 1])), ids=(letters + turn, np.array([2, 0, 1]))
        )
        assert cache.find(keys).tolist() == slots.tolist()
        starts = cache.id_starts[slots[0]], cache.id_starts[slots[2] + 1]
        assert cache.ids[slice(*starts)].tolist() == (letters + turn).tolist()
    assert not cache.find(np.array([1], np.uint64)).any()
    assert not cache.make_room(16)


def test_a_cache_finds_nothing_that_an_error_left_half_done() -> None:
    cache = PartCache(bits=4)
    key, letter, one = np.array([1], np.uint64), np.array([97]), np.array([1])
    with pytest.raises(ValueError, match="broadcast"):
        cache.add(key, texts=(letter, one), ids=(letter, np.array([1, 1, 1])))
    assert cache.find(key).tolist() == [0]
    slots = cache.add(key, texts=(letter, one), ids=(letter, one))
    assert cache.find(key).tolist() == slots.tolist()
    assert cache.ids[cache.id_starts[slots[0]]] == 97


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 1 << 40])
def test_fields_on_the_wire(value: int) -> None:
    message = field(24, value) + field(2, b"x" * 200)
    found = list(fields(message, 0, len(message)))
    assert [number for number, *_ in found] == [24, 2]
    assert message[slice(*found[1][1:])] == b"x" * 200
