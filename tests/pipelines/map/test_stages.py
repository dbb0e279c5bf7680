import dataclasses
from collections.abc import Sequence
from pathlib import Path

import ftfy
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import sentencepiece

from pipelines.corpus.recipe import SAMPLE
from pipelines.dedup.exact import text_hashes
from pipelines.dedup.fingerprint import PlainFingerprinter
from pipelines.filters.clean import CONFIG, Cleaner
from pipelines.map.clock import Clock
from pipelines.map.stages import Chain, clean, fingerprint, judge, load_chain, split_verdict
from pipelines.segments.rows import READ, Verdict
from pipelines.wudao import RECIPE, WudaoOptions
from shards.errors import UserError
from shards.text_hash import fold

CHINESE = "清晨的集市上，卖豆腐的老人把担子放下，慢慢地吆喝起来，邻居们提着篮子围了过来。"
ENGLISH = "The old bridge over the river was closed for repairs during the whole summer."
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"
HIGH = ["0xf5d931b526d096bf", "0x40bdefd94169e6ca"]
LOW = ["0x286eb7421b801f0f", "0x7076a68e75884d4e"]


def options(**changes: object) -> WudaoOptions:
    return WudaoOptions(tokenizer=RECIPE.sample_tokenizer, **changes)  # type: ignore[arg-type]  # any option


@pytest.fixture(scope="module")
def chain() -> Chain:
    return Chain(options())


def batch(*texts: str) -> pa.RecordBatch:
    num = len(texts)
    columns = [
        pa.array([100 * row for row in range(num)], pa.int64()),
        pa.array([50] * num, pa.int64()),
        pa.array([0] * num, pa.int32()),
        pa.array(range(num), pa.uint64()),
        pa.array(range(num), pa.uint64()),
        pa.array([len(text.encode()) for text in texts], pa.int64()),
        pa.array([""] * num, pa.large_string()),
        pa.array([""] * num, pa.large_string()),
        pa.array(texts, pa.large_string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=READ)


def check_same_rows(verdict: Verdict, before: pa.RecordBatch) -> None:
    """Check that a stage kept all rows in order; it may only add columns."""
    assert verdict.batch["position"].equals(before["position"])
    assert len(verdict.reasons) == before.num_rows


def test_native_loops_that_cannot_be_had_cost_one_line(
    tmp_path: Path, broken_numba: str, caplog: pytest.LogCaptureFixture
) -> None:
    benchmark = tmp_path / "benchmark.txt"
    benchmark.write_text(ENGLISH)
    chosen = options(
        dedup="minhash", quality=("zh=chinese-web", "en=gopher"), decontaminate=(str(benchmark),)
    )
    native, plain = (
        load_chain(chosen, compiled=compiled, run=str(tmp_path)) for compiled in (True, False)
    )
    assert caplog.messages == [broken_numba]
    rows = batch(CHINESE, f"{ENGLISH} &amp; more", JAPANESE)
    for given, expected in zip(
        judge(rows, native.stages, Clock())[1], judge(rows, plain.stages, Clock())[1], strict=True
    ):
        assert given == expected
    assert native.engines == plain.engines


def test_clean_repairs_and_says_where() -> None:
    before = batch(CHINESE, "Tom &amp; Jerry", "cafÃ©", "", " \n　")
    verdict = clean(before, Cleaner())
    check_same_rows(verdict, before)
    assert verdict.batch["text"].to_pylist() == [CHINESE, "Tom & Jerry", "café", "", " \n　"]
    assert verdict.batch["repaired"].to_pylist() == [False, True, True, False, False]
    assert verdict.reasons.to_pylist() == [None, None, None, "empty", "empty"]


def test_clean_drops_what_the_repair_empties() -> None:
    text = "\x01\x02"
    assert ftfy.fix_text(text, CONFIG) == ""
    verdict = clean(batch(text), Cleaner())
    assert verdict.reasons.to_pylist() == ["empty"]
    assert verdict.batch["repaired"].to_pylist() == [True]


def test_langid_keeps_the_languages_asked_for(chain: Chain) -> None:
    before = batch(CHINESE, ENGLISH, JAPANESE)
    verdict = chain.langid(before)
    check_same_rows(verdict, before)
    assert verdict.batch["language"].to_pylist() == ["zh", "en", "ja"]
    assert verdict.reasons.to_pylist() == [None, None, "language"]
    scores = verdict.batch["score"]
    assert scores.type == pa.float32()
    assert all(0.5 <= score <= 1 for score in scores.to_pylist())


def test_langid_drops_scores_below_the_threshold() -> None:
    score = Chain(options()).langid(batch(ENGLISH)).batch["score"][0].as_py()
    for threshold, reason in (
        (score, None),
        (np.nextafter(np.float32(score), 2), "language-score"),
    ):
        verdict = Chain(options(language_threshold=float(threshold))).langid(batch(ENGLISH))
        assert verdict.reasons.to_pylist() == [reason]


def test_all_languages_are_judged_by_their_score_alone() -> None:
    chain = Chain(options(languages=("all",), language_threshold=0.5))
    verdict = chain.langid(batch(JAPANESE, CHINESE, " "))
    assert verdict.batch["language"].to_pylist() == ["ja", "zh", "und"]
    assert verdict.reasons.to_pylist() == [None, None, "language-score"]


def test_tokens_are_those_of_the_library_and_eos(chain: Chain) -> None:
    library = sentencepiece.SentencePieceProcessor(model_file=str(SAMPLE / "sample.model"))
    texts = (CHINESE, ENGLISH, "a", f"{CHINESE}\n\n{ENGLISH}")
    before = batch(*texts)
    verdict = chain.tokenize(before)
    check_same_rows(verdict, before)
    eos = chain.tokenizer.special["eos"]
    tokens = verdict.batch["tokens"]
    assert tokens.to_pylist() == [[*library.encode(text), eos] for text in texts]
    assert tokens.type == pa.large_list(pa.from_numpy_dtype(chain.tokenizer.dtype))
    assert verdict.reasons.null_count == len(texts)


def test_special_tokens_written_in_a_text_are_text(chain: Chain) -> None:
    tokens = chain.tokenize(batch("<|endoftext|> [MASK] </s>")).batch["tokens"][0].as_py()
    specials = set(chain.tokenizer.special.values()) - {chain.tokenizer.special["unk"]}
    assert tokens.pop() == chain.tokenizer.special["eos"]
    assert not specials & set(tokens)


def test_only_a_text_that_the_tokenizer_fails_on_is_quarantined(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = chain.tokenize(batch(CHINESE, ENGLISH)).batch["tokens"].to_pylist()
    plain = chain.tokenizer._model.encode

    def failing(texts: Sequence[str]) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.int64]]:
        if "poison" in texts:
            raise RuntimeError("the library fails on this text")
        return plain(texts)

    model = dataclasses.replace(chain.tokenizer._model, encode=failing)
    monkeypatch.setattr(chain.tokenizer, "_model", model)
    kept, dropped = split_verdict(chain.tokenize(batch(CHINESE, "poison", ENGLISH)))
    assert kept["tokens"].to_pylist() == whole
    assert dropped.reasons.to_pylist() == ["tokenizer-failed"]
    assert dropped.batch["position"].to_pylist() == [100]


def test_fingerprint_folds_white_space() -> None:
    texts = ("a  b\n", "\ta b", "a b", "ab", "a　b")
    verdict = fingerprint(batch(*texts), PlainFingerprinter())
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
    assert "signature" not in Chain(options()).fingerprint(rows).batch.schema.names
    signatures = Chain(options(dedup="minhash")).fingerprint(rows).batch["signature"].to_pylist()
    assert signatures[0] == signatures[1] != signatures[3]
    assert signatures[2] is None
    assert {len(signature) for signature in signatures if signature} == {224}


def test_text_hashes_are_pinned_for_ever() -> None:
    high, low = text_hashes([fold("清晨 的\n集市"), ""])
    assert [hex(value) for value in high.tolist()] == HIGH
    assert [hex(value) for value in low.tolist()] == LOW


def test_the_chain_says_what_becomes_of_each_text(chain: Chain) -> None:
    before = batch(CHINESE, " ", JAPANESE, ENGLISH, "&#20013;&#25991;" * 20)
    kept, dropped = judge(before, chain.stages, Clock())
    assert kept["position"].to_pylist() == [0, 300, 400]
    assert [verdict.batch["position"].to_pylist() for verdict in dropped] == [[100], [200], [], []]
    reasons = [verdict.reasons.to_pylist() for verdict in dropped]
    assert reasons == [["empty"], ["language"], [], []]
    assert kept.schema.names == [
        *READ.names,
        *("repaired", "language", "score", "tokens", "prompt_tokens", "hash_high", "hash_low"),
    ]


def test_a_batch_without_a_kept_row_keeps_the_columns_of_the_chain(chain: Chain) -> None:
    whole, _ = judge(batch(CHINESE), chain.stages, Clock())
    for texts in ((" ", JAPANESE), ()):
        kept, dropped = judge(batch(*texts), chain.stages, Clock())
        assert kept.num_rows == 0
        assert kept.schema == whole.schema
        assert sum(verdict.batch.num_rows for verdict in dropped) == len(texts)


def test_facts_are_fingerprints_of_files_not_their_names(chain: Chain) -> None:
    assert set(chain.facts) == {"tokenizer", "lid_model", "quality"}
    files = [chain.facts[name] for name in ("tokenizer", "lid_model")]
    assert all(len(fact) == 64 and int(fact, 16) for fact in files)
    assert set(chain.engines) == {"langid", "tokenizer"}


def with_prompts(texts: Sequence[str], prompts: Sequence[str]) -> pa.RecordBatch:
    rows = batch(*texts)
    index = rows.schema.get_field_index("prompt")
    return rows.set_column(index, "prompt", pa.array(prompts, pa.large_string()))


def test_prompts_stand_before_their_texts_and_are_counted(chain: Chain) -> None:
    rows = with_prompts((CHINESE, ENGLISH, CHINESE), ("", "问题：桥？回答：", "问题：谁？"))
    verdict = chain.tokenize(rows)
    eos = chain.tokenizer.special["eos"]

    def ids(text: str) -> list[int]:
        return chain.tokenizer.encode_batch([text])[0].tolist() if text else []

    pairs = list(zip(rows["prompt"].to_pylist(), rows["text"].to_pylist(), strict=True))
    assert verdict.batch["tokens"].to_pylist() == [
        [*ids(prompt), *ids(text), eos] for prompt, text in pairs
    ]
    assert verdict.batch["prompt_tokens"].to_pylist() == [len(ids(prompt)) for prompt, _ in pairs]
    assert verdict.batch["prompt_tokens"].to_pylist()[1] > 0


def test_the_same_text_after_another_prompt_is_another_document() -> None:
    rows = with_prompts((CHINESE, CHINESE, "问" + CHINESE), ("", "问", ""))
    rows = fingerprint(rows, PlainFingerprinter()).batch
    hashes = rows["hash_high"].to_pylist()
    assert hashes[0] != hashes[1] == hashes[2]


def test_prompts_are_repaired_too() -> None:
    verdict = clean(with_prompts((CHINESE, CHINESE), ("Tom &amp; Jerry", "")), Cleaner())
    assert verdict.batch["prompt"].to_pylist() == ["Tom & Jerry", ""]
    assert verdict.batch["repaired"].to_pylist() == [True, False]


def test_quality_judges_what_is_in_a_language_asked_for_however_unsure() -> None:
    chain = Chain(options(quality=("zh=glm", "en=gopher"), language_threshold=0.99))
    texts = (CHINESE, CHINESE * 3, ENGLISH, JAPANESE * 5)
    before = clean(batch(*texts), Cleaner()).batch
    verdict = chain.assess(before)
    check_same_rows(verdict, before)
    assert verdict.batch["language"].to_pylist() == ["zh", "zh", "en", "ja"]
    chars = verdict.batch["glm.chars"].to_pylist()
    assert chars == [len(CHINESE), 3 * len(CHINESE), None, None]
    words = verdict.batch["gopher.words"].to_pylist()
    assert words == [None, None, len(ENGLISH.split()), None]
    low = [score < 0.99 for score in verdict.batch["score"].to_pylist()]
    assert any(low)
    own = ["glm-few-chars", None, "gopher-few-words", "language"]
    expected = [
        "language-score" if unsure and reason != "language" else reason
        for unsure, reason in zip(low, own, strict=True)
    ]
    assert [str(r).split("@")[0] for r in verdict.reasons.to_pylist()] == [str(e) for e in expected]


def test_masking_replaces_in_prompt_and_text_and_counts() -> None:
    rows = with_prompts((CHINESE, "mail me: jo@corpus.cn, 113.96.2.17"), ("", "from bo@corpus.cn"))
    verdict = Chain.mask(rows)
    prompt, text = (verdict.batch[name].to_pylist()[1] for name in ("prompt", "text"))
    assert "bo@" not in prompt
    assert "jo@" not in text
    assert "113.96.2.17" not in text
    assert verdict.batch["pii.email"].to_pylist() == [0, 2]
    assert verdict.batch["pii.ip"].to_pylist() == [0, 1]


def test_benchmarks_in_texts_are_dropped_and_counted(tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text(f"{ENGLISH} And so it stayed.\n")
    chain = Chain(options(decontaminate=(str(tmp_path / "test.txt"),)))
    verdict = chain.decontaminate(batch(CHINESE, f"Once more: {ENGLISH}"))
    assert verdict.reasons.to_pylist() == [None, "contaminated"]
    hits = verdict.batch["contamination.ngrams"].to_pylist()
    assert hits[0] == 0 < hits[1]
    assert "decontaminate" in chain.facts


def test_blocked_addresses_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "domains").write_text("bad.example\n")
    chain = Chain(options(url_blocklist=(str(tmp_path / "domains"),)))
    urls = pa.array(["https://www.bad.example/x", "https://good.example/"], pa.large_string())
    verdict = chain.block(batch(CHINESE, ENGLISH).append_column("url", urls))
    assert verdict.reasons.to_pylist() == ["url-blocklist", None]
    with pytest.raises(UserError, match="--url-blocklist needs a corpus whose records have a url"):
        chain.block(batch(CHINESE))
