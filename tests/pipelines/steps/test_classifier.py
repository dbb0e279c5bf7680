import fasttext
import numpy as np
import pytest

from pipelines.quality import QualityRules
from pipelines.steps.classifier import ClassifierScorer
from tests.pipelines.quality.models import TEXTS, write_classifier


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_classifier(tmp_path_factory.mktemp("model") / "quality.bin")


@pytest.mark.parametrize("loss", ["softmax", "hs", "ns", "ova"])
def test_scores_are_those_of_fasttext(tmp_path, loss):
    path = write_classifier(tmp_path / "m.bin", loss=loss, wordNgrams=2)
    library = fasttext.load_model(str(path)).f
    texts = [*TEXTS, "the moon Mond", "\n".join(TEXTS)]
    quality = QualityRules(ClassifierScorer([f"{path}:en"]).selection)
    scores = quality.judge(texts, ["en"] * len(texts)).metrics["classifier.en"]
    for text, score in zip(texts, scores, strict=True):
        answers = library.predict(text.replace("\n", " ") + "\n", -1, 0.0, "strict")
        right = {label: probability for probability, label in answers}.get("__label__en", 0.0)
        assert score == np.float32(min(right, 1.0))
    assert scores[0] > 0.6
    assert scores[3] < 0.4


def test_what_counts_is_the_model_and_the_bound_not_the_path(model, tmp_path):
    (tmp_path / "run=1").mkdir()
    copy = tmp_path / "run=1" / "copy.bin"
    copy.write_bytes(model.read_bytes())
    fingerprints = ClassifierScorer([f"en={model}:en>=0.4"]).fingerprints
    assert fingerprints == ClassifierScorer([f"en={copy}:__label__en>=0.40"]).fingerprints
    bounded = ClassifierScorer([f"en={model}:en>=0.5"]).fingerprints
    assert fingerprints != bounded
    assert (
        ClassifierScorer([f"en={model}:en>=0.4"], ["classifier.min_en=0.5"]).fingerprints == bounded
    )
    engines = [
        ClassifierScorer([f"{path}:en>={bound}"]).library_versions["classifier"]
        for path, bound in ((model, 0.4), (copy, 0.4), (model, 0.5))
    ]
    assert engines[0] == engines[1] != engines[2]
