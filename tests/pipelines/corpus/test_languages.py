import pytest

from pipelines.corpus.languages import plain_code


@pytest.mark.parametrize(
    ("label", "code"),
    [
        ("zho_Hant", "zh"),
        ("cmn_Hani", "zh"),
        ("yue_Hant", "yue"),
        ("eng_Latn", "en"),
        ("als_Latn", "sq"),
        ("als", "als"),
        ("arb_Arab", "ar"),
        ("abk_Cyrl", "abk_Cyrl"),
    ],
)
def test_labels_have_plain_codes(label: str, code: str) -> None:
    assert plain_code(label) == code
