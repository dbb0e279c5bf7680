import re

import fasttext
import numpy as np
import pytest

from pipelines.filters.classifier import Classifier, line_of, metric_of
from shards.errors import UserError
from tests.pipelines.quality.models import BAD, GOOD, write_classifier


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "quality.bin"
    return write_classifier(path, {"hq": GOOD, "cc": BAD})


def test_a_text_is_read_as_one_line():
    assert line_of(" \n one\r\ntwo\u2028three \n\n four\n") == "one two three    four"


def test_metrics_are_named_after_labels():
    assert metric_of("__label__hq") == "hq"
    assert metric_of("__label__v1.2 beta") == "v1_2_beta"
    assert metric_of("odd") == "odd"


@pytest.mark.parametrize("loss", ["softmax", "hs", "ns", "ova"])
def test_scores_are_those_of_fasttext(tmp_path, loss):
    path = write_classifier(tmp_path / "m.bin", {"hq": GOOD, "cc": BAD}, loss=loss)
    library = fasttext.load_model(str(path)).f
    texts = [*GOOD, *BAD, "cheap theorem", "\n".join(GOOD)]
    scores = Classifier([f"{path}:hq"]).score(texts, ["en"] * len(texts))["classifier.hq"]
    for text, score in zip(texts, scores, strict=True):
        answers = library.predict(text.replace("\n", " ") + "\n", -1, 0.0, "strict")
        right = {label: probability for probability, label in answers}.get("__label__hq", 0.0)
        assert score == np.float32(min(right, 1.0))
    assert scores[0] > 0.6
    assert scores[3] < 0.4


def test_languages_have_their_own_classifiers(model, tmp_path):
    other = write_classifier(tmp_path / "zh.bin", {"好": ["很 好", "非常 好"], "hq": ["坏"]})
    scorer = Classifier([f"{model}:hq>=0.6", f"zh={other}:好>=0.5", f"zh={other}:hq<=0.5"])
    assert scorer.columns == ("classifier.hq", "classifier.好")
    scores = scorer.score([GOOD[0], "很 好", BAD[0]], ["en", "zh", "de"])
    assert np.isnan(scores["classifier.好"]).tolist() == [True, False, True]
    assert (scores["classifier.hq"] >= 0.6).tolist() == [True, False, False]
    assert [rule.reason for rule in scorer.rules("zh") if rule.bound == 0.5] == [
        "classifier-low-好",
        "classifier-high-hq",
    ]
    assert [rule.bound for rule in scorer.rules("de")][:1] == [0.6]


def test_a_text_without_words_has_no_score(model):
    scores = Classifier([f"{model}:hq>=0.4"]).score(["", " \n "], ["en", "en"])
    assert np.isnan(scores["classifier.hq"]).all()


def test_the_facts_are_the_model_and_the_bound_not_the_path(model, tmp_path):
    copy = tmp_path / "copy.bin"
    copy.write_bytes(model.read_bytes())
    facts = Classifier([f"en={model}:hq>=0.4"]).facts
    assert facts == Classifier([f"en={copy}:__label__hq>=0.40"]).facts
    assert facts != Classifier([f"en={model}:hq>=0.5"]).facts
    assert facts["classifier"]["en"]["bounds"] == {"max_hq": None, "min_hq": 0.4}
    assert len(facts["classifier"]["en"]["models"]["__label__hq"]) == 64
    engines = [
        Classifier([f"{path}:hq>={bound}"]).engines["classifier"]
        for path, bound in ((model, 0.4), (copy, 0.4), (model, 0.5))
    ]
    assert engines[0] == engines[1] != engines[2]
    assert re.fullmatch(r"\S*fasttext\S* \S+ with \w{12}", engines[0])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{}>=0.4", "names no label"),
        ("{}:good>=0.4", 'has no label "good": .*it has .*hq'),
        ("{}:hq>=4", '"4" is no probability from 0 to 1'),
        ("{}:hq>=high", '"high" is no probability'),
        ("/none/m.bin:hq>=0.4", "/none/m.bin: No such file or directory; expected a classifier"),
    ],
)
def test_wrong_specs_are_refused(model, spec, message):
    with pytest.raises(UserError, match=message):
        Classifier([spec.format(model)])


def test_a_file_that_is_no_classifier_is_refused(tmp_path):
    path = tmp_path / "m.bin"
    path.write_bytes(b"no model at all")
    with pytest.raises(UserError, match=r"is no fastText classifier .*; expected a classifier"):
        Classifier([f"{path}:hq>=0.4"])


def test_one_label_comes_from_one_model(model, tmp_path):
    other = write_classifier(tmp_path / "other.bin", {"hq": BAD, "cc": GOOD})
    with pytest.raises(UserError, match=r"gives classifier.hq already \(.*quality.bin\)"):
        Classifier([f"{model}:hq>=0.4", f"{other}:hq>=0.4"])
