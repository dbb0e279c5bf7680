import pytest

from pipelines.quality import Quality
from tests.pipelines.quality.measuring import metrics


@pytest.mark.parametrize("language", ["en", "zh", "ja", "und"])
def test_texts_have_to_be_longer_than_100_characters(language: str) -> None:
    assert metrics("glm", "字" * 100, language) == {"chars": 100}
    judgement = Quality.parse(("glm",)).judge(["字" * 100, "字" * 101], [language] * 2)
    assert judgement.reasons == ["glm-few-chars", None]
