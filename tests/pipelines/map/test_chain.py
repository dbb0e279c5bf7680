from pathlib import Path

import pytest

from pipelines.filters.filter_spec import PLACES, QUALITY, FilterSpec
from pipelines.filters.filter_spec import READ as AFTER_READING
from pipelines.filters.step import Clock, run
from pipelines.filters.user_filter import load_filters
from pipelines.map.chain import Chain, load_chain
from pipelines.segments.rows import READ
from pipelines.wudao import RECIPE, WudaoOptions
from shards.errors import UserError
from tests.pipelines.filters.batches import CHINESE, ENGLISH, JAPANESE, batch


def options(**changes: object) -> WudaoOptions:
    return WudaoOptions(tokenizer=RECIPE.sample_tokenizer, **changes)  # type: ignore[arg-type]  # any option


@pytest.fixture(scope="module")
def chain() -> Chain:
    return Chain(options())


def test_native_loops_that_cannot_be_had_cost_one_line(
    tmp_path: Path, broken_numba: str, caplog: pytest.LogCaptureFixture
) -> None:
    benchmark = tmp_path / "benchmark.txt"
    benchmark.write_text(ENGLISH)
    chosen = options(
        dedup="minhash", quality=("zh=chinese-web", "en=gopher"), decontaminate=(str(benchmark),)
    )
    native, plain = (
        load_chain(chosen, native=compiled, run=str(tmp_path)) for compiled in (True, False)
    )
    assert caplog.messages == [broken_numba]
    rows = batch(CHINESE, f"{ENGLISH} &amp; more", JAPANESE)
    for given, expected in zip(
        run(rows, native.steps, Clock())[1], run(rows, plain.steps, Clock())[1], strict=True
    ):
        assert given == expected
    assert native.engines == plain.engines


def test_the_chain_says_what_becomes_of_each_text(chain: Chain) -> None:
    before = batch(CHINESE, " ", JAPANESE, ENGLISH, "&#20013;&#25991;" * 20)
    kept, dropped = run(before, chain.steps, Clock())
    assert kept["position"].to_pylist() == [0, 300, 400]
    assert [verdict.batch["position"].to_pylist() for verdict in dropped] == [[100], [200], [], []]
    reasons = [verdict.reasons.to_pylist() for verdict in dropped]
    assert reasons == [["empty"], ["language"], [], []]
    assert kept.schema.names == [
        *READ.names,
        *("repaired", "language", "score", "tokens", "prompt_tokens", "hash_high", "hash_low"),
    ]


def test_a_batch_without_a_kept_row_keeps_the_columns_of_the_chain(chain: Chain) -> None:
    whole, _ = run(batch(CHINESE), chain.steps, Clock())
    for texts in ((" ", JAPANESE), ()):
        kept, dropped = run(batch(*texts), chain.steps, Clock())
        assert kept.num_rows == 0
        assert kept.schema == whole.schema
        assert sum(verdict.batch.num_rows for verdict in dropped) == len(texts)


def test_facts_are_fingerprints_of_files_not_their_names(chain: Chain) -> None:
    assert set(chain.facts) == {"tokenizer", "lid_model", "quality"}
    files = [chain.facts[name] for name in ("tokenizer", "lid_model")]
    assert all(len(fact) == 64 and int(fact, 16) for fact in files)
    assert set(chain.engines) == {"langid", "tokenizer"}


def test_no_filter_takes_a_name_that_figures_of_the_chain_go_by(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("example.com\n")
    (tmp_path / "benchmark.txt").write_text(ENGLISH)
    whole = Chain(
        options(
            url_blocklist=(str(tmp_path / "list.txt"),),
            quality=("gopher",),
            decontaminate=(str(tmp_path / "benchmark.txt"),),
            pii="mask",
        )
    )
    steps = {step.name for step in whole.steps}
    assert {*PLACES} - steps == {AFTER_READING}
    fields = {field.name.partition(".")[0] for step in whole.steps for field in step.fields}
    for name in sorted({*steps, *PLACES, *fields}):
        spec = FilterSpec(after=QUALITY, module="mine", name=name, given={})
        with pytest.raises(UserError, match=f"a filter cannot be called '{name}'"):
            load_filters([spec])
