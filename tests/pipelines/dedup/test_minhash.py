import itertools
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.dedup import minhash
from pipelines.dedup.minhash import (
    NUM_BANDS,
    NUM_SLOTS,
    Signatures,
    by_characters,
    sign,
    similarity,
)

CHINESE = "清晨的集市上，卖豆腐的老人把担子放下，慢慢地吆喝起来，邻居们提着篮子围了过来。"
ENGLISH = "The old bridge over the river was closed for repairs during the whole summer."
THAI = "ตลาดเช้าริมแม่น้ำคึกคักตั้งแต่ก่อนรุ่งสาง"
KOREAN = "아침 시장은 해가 뜨기 전부터 사람들로 붐빈다 그리고 곧 조용해진다"
REAL_TEXT = Path(__file__).parents[4] / "shared" / "data" / "corpora" / "wudao"

WORDS = np.array([f"w{number:x}" for number in range(100_000)])
CHARACTERS = np.array([chr(code) for code in range(0x4E00, 0x9FA0)])

GOLDEN_BANDS = [
    "0x261f964a388ca700",
    "0x2104819a4d84417c",
    "0x3e785edc803c887f",
    "0xd9367fc41fa9658c",
]
GOLDEN_LAST_BANDS = [
    "0xd48a3a5e72f269e7",
    "0xc6746c7fd0fae336",
    "0x9a5f0e32832f9ef7",
    "0xd48a3a5e72f269e7",
]
GOLDEN_SLOTS = [
    "62d355c30eaa45e9ed112d4b3f0420fe",
    "26215e006aba7dc75ee0eb81191849cc",
    "8adaf2ec4cf71836ebfc26ae54be82d4",
    "b8d3fac328aa45e9ed112d9b3f042098",
]

TEXT = st.one_of(
    st.text(st.sampled_from("ab ,") | st.sampled_from("清晨集市"), max_size=40),
    st.text(max_size=30),
    st.sampled_from([CHINESE, ENGLISH, THAI, KOREAN, ENGLISH * 9, CHINESE * 9]),
)


def same(one: Signatures, other: Signatures) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("bands", "slots", "signed")
    )


def folded(text: str) -> str:
    return " ".join(text.split())


# --- what a signature is


def test_signatures_are_pinned_for_ever() -> None:
    found = sign([ENGLISH, CHINESE, "one two three four five", ENGLISH * 40])
    assert found.signed.all()
    assert [hex(value) for value in found.bands[:, 0].tolist()] == GOLDEN_BANDS
    assert [hex(value) for value in found.bands[:, -1].tolist()] == GOLDEN_LAST_BANDS
    assert [bytes(row[:16]).hex() for row in found.slots] == GOLDEN_SLOTS


def test_shapes_and_types() -> None:
    for texts in ([], [""], [ENGLISH, "", CHINESE]):
        found = sign(texts)
        assert (found.bands.shape, found.bands.dtype) == ((len(texts), NUM_BANDS), np.uint64)
        assert (found.slots.shape, found.slots.dtype) == ((len(texts), NUM_SLOTS), np.uint8)
        assert (found.signed.shape, found.signed.dtype) == ((len(texts),), bool)


@pytest.mark.parametrize(
    ("text", "signed"),
    [
        ("", False),
        ("one two three four", False),
        ("one two three four five", True),
        ("one, two: three-four... five", True),
        ("1 2 3 4 !? --", False),
        ("清晨集市", False),
        ("清晨的集市", True),
        ("清 晨 集 市", False),
        ("사람 사람 사람 사람", False),
        ("사람 사람 사람 사람 사람", True),
    ],
)
def test_fewer_than_five_units_are_not_signed(text: str, signed: bool) -> None:
    found = sign([text])
    assert found.signed.tolist() == [signed]
    assert found.bands.any() == found.slots.any() == signed


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (ENGLISH, ENGLISH.upper(), True),
        (ENGLISH, ENGLISH.replace(" ", " -- ").rstrip("."), True),
        (ENGLISH, ENGLISH.replace("bridge", "brigde"), False),
        (ENGLISH, ENGLISH.replace("old bridge", "bridge old"), False),
        (CHINESE, " ".join(CHINESE), True),
        (CHINESE, CHINESE.replace("，", ""), False),
        ("a b c d e", "ab c d e", False),
        ("été é à ç où", "ÉTÉ é à ç où", False),  # only ASCII is made small
    ],
)
def test_what_counts_as_the_same(one: str, other: str, alike: bool) -> None:
    found = sign([one, other])
    assert np.array_equal(found.bands[0], found.bands[1]) == alike


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CHINESE, True),
        ("吾輩は猫である。名前はまだ無い。", True),
        (THAI, True),
        ("ຕະຫຼາດເຊົ້າ", True),
        ("မနက်ခင်းဈေး", True),
        ("ផ្សារពេលព្រឹក", True),
        (KOREAN, False),
        ("Старый мост через реку был закрыт.", False),
        ("पुराना पुल पूरी गर्मियों में बंद था।", False),
        ("ძველი ხიდი დაკეტილი იყო", False),
        (f"{'a' * 80}{'清' * 19}", False),
        (f"{'a' * 80}{'清' * 20}", True),
        (f"{'a' * 80}{'ก' * 10}{'清' * 10}", True),
        (f"{'a' * 80}{'ก' * 10}{'清' * 9}", False),
        (f"{'a' * 80}{'ა' * 10}{'清' * 10}", False),
    ],
)
def test_script_decides_between_words_and_characters(text: str, expected: bool) -> None:
    assert by_characters(text) == expected


# --- a signature depends on its text alone


@settings(max_examples=60)
@given(st.lists(TEXT, max_size=8), st.integers(0, 8))
def test_a_signature_does_not_depend_on_its_batch(texts: list[str], cut: int) -> None:
    texts = [folded(text) for text in texts]
    whole = sign(texts)
    parts = [sign(part) for part in (texts[:cut], texts[cut:])]
    joined = Signatures(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("bands", "slots", "signed")
        )
    )
    assert same(whole, joined)
    order = list(range(len(texts)))[::-1]
    turned = sign([texts[at] for at in order])
    assert same(whole, Signatures(turned.bands[order], turned.slots[order], turned.signed[order]))


def grams(units: list[str]) -> set[tuple[str, ...]]:
    return {tuple(units[at : at + 5]) for at in range(len(units) - 4)}


def jaccard(one: list[str], other: list[str]) -> float:
    return len(grams(one) & grams(other)) / len(grams(one) | grams(other))


@pytest.mark.parametrize(("pool", "separator"), [(WORDS, " "), (CHARACTERS, "")])
def test_a_long_text_is_signed_in_pieces(pool: np.ndarray, separator: str) -> None:
    """All of a text counts, not its first piece; the seams are a handful of grams."""
    rng = np.random.default_rng(4)
    long = rng.choice(pool, 3 * minhash.PIECE_CHARACTERS).tolist()
    changed = long[: len(long) // 2] + rng.choice(pool, len(long) // 2).tolist()
    found = sign([separator.join(units) for units in (long, changed)])
    estimate = similarity(found.slots[:1], found.slots[1:])[0]
    assert abs(estimate - 1 / 3) < 4 * np.sqrt(2 / 9 / NUM_SLOTS)


# --- how good it is


def similar_pairs(
    rng: np.random.Generator, pool: np.ndarray, wanted: float, num: int
) -> list[tuple[list[str], list[str]]]:
    """Pairs of 400 units; the second has a stretch replaced, so that about so much is common."""
    size = 400
    keep = round(size * 2 * wanted / (1 + wanted))
    pairs = []
    for _ in range(num):
        one = rng.choice(pool, size).tolist()
        pairs.append((one, one[:keep] + rng.choice(pool, size - keep).tolist()))
    return pairs


@pytest.mark.parametrize(("pool", "separator"), [(WORDS, " "), (CHARACTERS, "")])
@pytest.mark.parametrize("wanted", [0.5, 0.6, 0.7, 0.8, 0.9])
def test_bands_are_shared_as_often_as_published_and_slots_tell_how_near(
    pool: np.ndarray, separator: str, wanted: float
) -> None:
    num = 300
    pairs = similar_pairs(np.random.default_rng(int(wanted * 10)), pool, wanted, num)
    exact = np.array([jaccard(*pair) for pair in pairs])
    assert abs(exact.mean() - wanted) < 0.03
    one, other = (sign([separator.join(pair[side]) for pair in pairs]) for side in (0, 1))
    hits = (one.bands == other.bands).any(axis=1).sum()
    chance = 1 - (1 - exact**8) ** NUM_BANDS
    error = np.sqrt((chance * (1 - chance)).sum())
    assert abs(hits - chance.sum()) < 4 * error + 1
    off = similarity(one.slots, other.slots) - exact
    spread = np.sqrt((exact * (1 - exact)).mean() / NUM_SLOTS)
    assert abs(off.mean()) < 4 * spread / np.sqrt(num)
    assert 0.8 * spread < np.sqrt((off**2).mean()) < 1.2 * spread


@pytest.mark.parametrize("size", [5, 6, 8, 16, 40, 120])
def test_short_texts_are_estimated_as_well(size: int) -> None:
    """Most slots of a short text are filled from others."""
    rng = np.random.default_rng(size)
    texts = [rng.choice(WORDS, size).tolist() for _ in range(300)]
    changed = [[*text[:-1], "other"] for text in texts]
    exact = np.array([jaccard(*pair) for pair in zip(texts, changed, strict=True)])
    one, other = (sign([" ".join(text) for text in side]) for side in (texts, changed))
    off = similarity(one.slots, other.slots) - exact
    # A text of n grams fills at most n slots at random: the error of that choice comes on top, and
    # that of bytes which agree by chance.
    spread = np.sqrt((exact * (1 - exact)).mean() * (1 / NUM_SLOTS + 1 / size))
    assert abs(off.mean()) < 5 * spread / np.sqrt(len(texts)) + 1e-3
    assert np.sqrt((off**2).mean()) <= 1.2 * (spread + np.sqrt(1 / 256 / NUM_SLOTS))


def test_unlike_texts_share_nothing() -> None:
    rng = np.random.default_rng(8)
    found = sign([" ".join(rng.choice(WORDS, 200)) for _ in range(200)])
    estimates = similarity(found.slots[:100], found.slots[100:])
    assert abs(estimates.mean()) < 4 * np.sqrt(1 / 256 / NUM_SLOTS / 100)
    assert np.unique(found.bands).size == found.bands.size
    # Bytes of slots are spread over all values; a low one is no more likely than a high one.
    counts = np.bincount(found.slots.reshape(-1), minlength=256)
    assert counts.min() > 0.4 * counts.mean()
    assert abs(found.slots.mean() - 127.5) < 5 * 73.9 / np.sqrt(found.slots.size)


def test_similarity_of_made_up_slots() -> None:
    one = np.zeros((3, NUM_SLOTS), np.uint8)
    other = one.copy()
    other[1] += 1
    other[2, : NUM_SLOTS // 2] += 1
    assert similarity(one, other).tolist() == pytest.approx([1, -1 / 255, 0.5 - 0.5 / 255])
    assert similarity(one[:0], other[:0]).tolist() == []


def characters(text: str) -> list[str]:
    return list(text.replace(" ", ""))


def test_real_paragraphs_are_distinguished() -> None:
    if not REAL_TEXT.exists():
        pytest.skip(f"no real paragraphs in {REAL_TEXT}")
    path = min(REAL_TEXT.glob("part-*.json"))
    read = orjson.loads(path.read_bytes())
    records = read["RECORDS"] if isinstance(read, dict) else read
    texts = [folded(record["content"]) for record in records][:300]
    near = [text[: len(text) * 9 // 10] for text in texts]
    one, other = sign(texts), sign(near)
    exact = np.array(
        [jaccard(characters(a), characters(b)) for a, b in zip(texts, near, strict=True)]
    )
    off = similarity(one.slots, other.slots) - exact
    assert np.sqrt((off**2).mean()) < 0.05
    unlike = [jaccard(characters(a), characters(b)) for a, b in itertools.pairwise(texts)]
    shared = (one.bands[:-1] == one.bands[1:]).any(axis=1)
    assert not shared[np.array(unlike) < 0.2].any()
