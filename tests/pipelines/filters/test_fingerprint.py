from pipelines.dedup.exact import text_hashes
from pipelines.filters.fingerprint import Fingerprint
from shards.text_hash import fold
from tests.pipelines.filters.batches import CHINESE, ENGLISH, batch, with_prompts

HIGH = ["0xf5d931b526d096bf", "0x40bdefd94169e6ca"]
LOW = ["0x286eb7421b801f0f", "0x7076a68e75884d4e"]


def test_fingerprint_folds_white_space() -> None:
    texts = ("a  b\n", "\ta b", "a b", "ab", "a　b")
    verdict = Fingerprint(near=False)(batch(*texts))
    hashes = list(
        zip(
            verdict.batch["hash_high"].to_pylist(),
            verdict.batch["hash_low"].to_pylist(),
            strict=True,
        )
    )
    assert hashes[0] == hashes[1] == hashes[2] == hashes[4] != hashes[3]
    assert verdict.reasons.null_count == len(texts)


def test_fingerprint_signs_texts_where_near_duplicates_are_looked_for() -> None:
    rows = batch(CHINESE, f" {CHINESE}\n", "too short", ENGLISH)
    assert "signature" not in Fingerprint(near=False)(rows).batch.schema.names
    signatures = Fingerprint(near=True)(rows).batch["signature"].to_pylist()
    assert signatures[0] == signatures[1] != signatures[3]
    assert signatures[2] is None
    assert {len(signature) for signature in signatures if signature} == {224}


def test_text_hashes_are_pinned_for_ever() -> None:
    high, low = text_hashes([fold("清晨 的\n集市"), ""])
    assert [hex(value) for value in high.tolist()] == HIGH
    assert [hex(value) for value in low.tolist()] == LOW


def test_the_same_text_after_another_prompt_is_another_document() -> None:
    rows = with_prompts((CHINESE, CHINESE, "问" + CHINESE), ("", "问", ""))
    rows = Fingerprint(near=False)(rows).batch
    hashes = rows["hash_high"].to_pylist()
    assert hashes[0] != hashes[1] == hashes[2]
