import math

import numpy as np
import pyarrow as pa
import pytest

from pipelines.filters.fasttext_model import file_hash
from pipelines.filters.scorer import (
    bound_profile,
    broken_rules,
    described,
    join_bounds,
    join_selections,
    parse_spec,
    recorded_selection,
)
from pipelines.quality.profile import ABOVE, BELOW, NAN
from pipelines.quality.selection import EVERY, chosen_for, parse_selection
from shards.errors import UserError


@pytest.mark.parametrize(
    ("text", "language", "source", "side", "bound"),
    [
        ("m.bin:hq>=0.4", EVERY, "m.bin:hq", "min", "0.4"),
        ("m.bin:hq", EVERY, "m.bin:hq", "min", ""),
        ("zh=/data/m.bin:hq<=0.9", "zh", "/data/m.bin:hq", "max", "0.9"),
        ("/run=1/m.bin:hq>=0.4", EVERY, "/run=1/m.bin:hq", "min", "0.4"),
        ("zh=a+b<=cut.csv:head", "zh", "a+b", "max", "cut.csv:head"),
        ("zh=a+b", "zh", "a+b", "min", ""),
    ],
)
def test_a_spec_names_a_language_files_and_a_bound(text, language, source, side, bound):
    spec = parse_spec(text)
    assert (spec.language, spec.source, spec.side, spec.bound) == (language, source, side, bound)


def test_a_spec_with_another_sign_or_language_is_refused():
    with pytest.raises(UserError, match=r'"m.bin:hq>0.4" sets no bound: write >=NUMBER'):
        parse_spec("m.bin:hq>0.4")
    with pytest.raises(UserError, match=r'"english" is not a language code.*write "en"'):
        parse_spec("english=m.bin:hq>=0.4")


def test_the_two_bounds_of_a_metric_may_come_from_two_specs():
    bounds: dict[str, float] = {}
    for text in ("m:hq>=0.4", "m:hq<=0.9"):
        spec = parse_spec(text)
        join_bounds(bounds, spec.limit("hq", float(spec.bound)), spec)
    assert bounds == {"min_hq": 0.4, "max_hq": 0.9}
    spec = parse_spec("m:hq>=0.5")
    with pytest.raises(UserError, match=r'"m:hq>=0.5" sets min_hq once more'):
        join_bounds(bounds, spec.limit("hq", 0.5), spec)


def test_bounds_are_rules_with_reasons_of_their_own():
    bound = bound_profile("classifier", {"min_hq": 0.4, "max_hq": NAN})
    low, high = bound.profile.rules(bound.bounds)
    assert (low.metric, low.comparison, low.bound) == ("classifier.hq", BELOW, 0.4)
    assert (high.metric, high.comparison) == ("classifier.hq", ABOVE)
    assert math.isnan(high.bound)
    assert (low.reason, high.reason) == ("classifier-low-hq", "classifier-high-hq")
    assert bound_profile("perplexity", {"max_value": 1.0}).profile.reasons == ("perplexity-high",)


def test_recorded_bounds_come_back():
    bounds = {"min_hq": 0.4, "max_hq": NAN}
    facts = {"classifier": {"zh": {"models": {}, "bounds": described(bounds)}}}
    assert facts["classifier"]["zh"]["bounds"] == {"max_hq": None, "min_hq": 0.4}
    (bound,) = chosen_for(recorded_selection(facts), "zh")
    assert bound.bounds["min_hq"] == 0.4
    assert math.isnan(bound.bounds["max_hq"])
    assert recorded_selection({"quality": {}}) == {}


def test_joined_selections_apply_the_first_before_the_second():
    profiles = parse_selection(["gopher", "zh=glm"])
    facts = {"perplexity": {"en": {"bounds": {"min_value": None, "max_value": 9.0}}}}
    joined = join_selections(profiles, recorded_selection(facts))
    names = {
        language: [bound.profile.name for bound in chosen_for(joined, language)]
        for language in ("en", "zh", "de")
    }
    assert names == {"en": ["gopher@paper", "perplexity"], "zh": ["glm"], "de": ["gopher@paper"]}


def test_a_text_gets_the_reason_of_the_first_rule_it_breaks():
    bound = bound_profile("classifier", {"min_hq": 0.4, "max_hq": 0.9})
    rules = bound.profile.rules(bound.bounds)
    metrics = {"classifier.hq": np.array([0.3, 0.4, 0.95, np.nan, 0.1], np.float32)}
    languages = pa.array(["en", "en", "en", "en", "zh"])
    reasons = broken_rules(lambda code: rules if code == "en" else (), languages, metrics)
    assert reasons == ["classifier-low-hq", None, "classifier-high-hq", None, None]


def test_a_hash_of_no_file_says_so(tmp_path):
    with pytest.raises(UserError, match=r"none.bin: No such file or directory; expected the file"):
        file_hash(tmp_path / "none.bin")
