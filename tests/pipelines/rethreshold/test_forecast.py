import pytest

from pipelines.quality.selection import parse_selection
from pipelines.rethreshold.forecast import Figure, Setting, forecasts, sum_forecasts
from pipelines.rethreshold.recount import NOW, THEN, Fate, Recount, SourceRecount
from pipelines.run.origin import Thresholds

GLM = Thresholds(languages=frozenset({"zh", "en"}), score=0.5, selection=parse_selection(["glm"]))
LOOSER = Thresholds(
    languages=GLM.languages, score=0.5, selection=parse_selection(["glm"], ["glm.min_chars=50"])
)


def setting(*, dedup: bool = True, screened: bool = False) -> Setting:
    return Setting(now=GLM, then=LOOSER, dedup=dedup, screened=screened, stride=100)


def counts(now: dict[int, tuple[int, int, int]], then: dict[int, tuple[int, int, int]]) -> Recount:
    made = Recount.zero(1)
    for when, fates in ((NOW, now), (THEN, then)):
        for fate, amounts in fates.items():
            made.passed[when, fate] = amounts
    made.dropped[:] = [[1, 2, 10], [1, 2, 4]]
    made.broken[:] = [[1, 2, 11], [1, 2, 5]]
    return made


PASSED = {Fate.KEPT: (80, 8000, 2080), Fate.DEDUPLICATED: (20, 2000, 520)}


def source(admitted: tuple[int, int, int] = (6, 300, 0), *, later: int = 0) -> SourceRecount:
    now = {**PASSED, Fate.SCREENED: (later, 0, 0)}
    return SourceRecount(
        languages={"zh": counts(now, {**now, Fate.EXCLUDED: admitted})}, unjudged={"too-short": 3}
    )


def test_what_comes_in_is_estimated_by_its_bytes_and_the_share_of_duplicates() -> None:
    (forecast,) = forecasts({"s": source()}, setting()).values()
    # 2600 tokens of 100 texts are an eos each, and a quarter token per byte.
    assert forecast.before_dedup == {
        "documents": Figure(now=100, then=106, exact=True),
        "bytes": Figure(now=10_000, then=10_300, exact=True),
        "tokens": Figure(now=2600, then=2600 + 6 + 75, exact=False),
    }
    assert forecast.dataset == {
        "documents": Figure(now=80, then=80 + round(6 * 0.8), exact=False),
        "bytes": Figure(now=8000, then=8240, exact=False),
        "tokens": Figure(now=2080, then=2080 + round(81 * 0.8), exact=False),
        "samples": Figure(now=21, then=22, exact=False),
    }
    language, score, rule = forecast.steps
    assert (language.drops, score.drops, rule.drops) == ((1, 1), (2, 2), (10, 4))
    assert (rule.step, rule.reason, rule.bounds) == (
        "glm.min_chars",
        "glm-few-chars",
        ("101", "50"),
    )
    assert rule.breaks == (11, 5)


def test_nothing_that_comes_in_leaves_everything_before_dedup_exact() -> None:
    (forecast,) = forecasts({"s": source((0, 0, 0))}, setting()).values()
    assert all(figure.exact for figure in forecast.before_dedup.values())
    assert all(figure.exact for figure in forecast.dataset.values()), "and nothing changed at all"


@pytest.mark.parametrize(("later", "screened"), [(25, False), (25, True), (0, True)])
def test_stages_between_take_their_share(later: int, screened: bool) -> None:
    (forecast,) = forecasts(
        {"s": source((10, 300, 0), later=later)}, setting(screened=screened)
    ).values()
    share = later / (100 + later)
    documents = forecast.before_dedup["documents"]
    assert documents == Figure(now=100, then=100 + round(10 * (1 - share)), exact=False)


def test_without_dedup_the_dataset_is_what_the_rules_keep() -> None:
    (forecast,) = forecasts({"s": source()}, setting(dedup=False)).values()
    assert forecast.dataset["documents"] == forecast.before_dedup["documents"]
    assert forecast.dataset["samples"].now == 26


def test_a_language_without_tokens_of_its_own_takes_those_of_the_nearest() -> None:
    new = counts({}, {Fate.EXCLUDED: (10, 1000, 0)})
    own = SourceRecount(languages={**source((0, 0, 0)).languages, "en": new})
    dense = counts({Fate.KEPT: (1, 100, 101)}, {Fate.KEPT: (1, 100, 101)})
    elsewhere = SourceRecount(languages={"en": dense})
    alone = forecasts({"s": own}, setting())["s"].before_dedup["tokens"].then
    assert alone == 2600 + 10 + 250, "a quarter token per byte, like Chinese in the same source"
    both = forecasts({"s": own, "t": elsewhere}, setting())["s"].before_dedup["tokens"].then
    assert both == 2600 + 10 + 1000, "a token per byte, like English in another source"


def test_sums_are_sums_and_one_estimate_makes_the_sum_one() -> None:
    parts = forecasts({"s": source(), "t": source((0, 0, 0))}, setting())
    both = sum_forecasts(parts.values())
    assert both.before_dedup["documents"] == Figure(now=200, then=206, exact=True)
    assert both.dataset["documents"] == Figure(now=160, then=165, exact=False)
    assert both.unjudged == {"too-short": 6}
    assert [step.drops for step in both.steps] == [(2, 2), (4, 4), (20, 8)]
