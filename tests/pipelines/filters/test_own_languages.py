"""Models of languages with labels of their own, such as GlotLID's: everything goes by those."""

import hashlib
import io
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from pipelines.compiled import use_native
from pipelines.corpus.languages import LANGUAGES, plain_code
from pipelines.filters.langid import installed_model, load_identifier
from pipelines.rethreshold import Rethreshold
from pipelines.run.build import build
from tests.pipelines.runs import page, small, write_wudao

CHINESE = "人工智能正在改变我们的生活方式，也带来了新的问题。"
ENGLISH = "The quick brown fox jumps over the lazy dog. "
NAMES = {"zh": "zho_Hans", "en": "eng_Latn", "ja": "jpn_Jpan", "sq": "als_Latn", "yue": "yue_Hant"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """lid.176 with labels as GlotLID and NLLB write them."""
    content = installed_model().read_bytes()
    for code, label in NAMES.items():
        content = content.replace(f"__label__{code}\0".encode(), f"__label__{label}\0".encode())
    path = tmp_path_factory.mktemp("model") / "glot.ftz"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("chars", [0, "auto"])
def test_its_labels_are_the_languages(
    model: Path, compiled: bool, chars: int | str, caplog: pytest.LogCaptureFixture
) -> None:
    texts = [CHINESE, ENGLISH, "吾輩は猫である。名前はまだ無い。", "", "Guten Morgen!"]
    use_native(compiled)
    own, usual = load_identifier(model, chars=chars), load_identifier(chars=chars)
    assert own.labels == {NAMES.get(code, code) for code in LANGUAGES}
    labels, scores = own.identify(texts)
    expected, expected_scores = usual.identify(texts)
    assert labels == [NAMES.get(code, code) for code in expected]
    assert labels[:4] == ["zho_Hans", "eng_Latn", "jpn_Jpan", "und"]
    if chars == 0:
        np.testing.assert_array_equal(scores, expected_scores)
    assert caplog.text == ""


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
def test_what_a_label_means(label: str, code: str) -> None:
    assert plain_code(label) == code


def test_a_dataset_of_such_a_model(model: Path, tmp_path: Path) -> None:
    write_wudao(tmp_path / "in" / "part-1.json", [page(at) for at in range(5)])
    changes = {
        "lid_model": str(model),
        "languages": ("zho_Hans", "eng_Latn"),
        "quality": ("zho_Hans=glm",),
        "threshold": ("zho_Hans:glm.min_chars=110",),
    }
    manifest = build("pipelines.wudao", small(tmp_path / "out", tmp_path / "in", **changes))
    assert manifest.options["languages"] == ["eng_Latn", "zho_Hans"]
    known = hashlib.sha256(model.read_bytes()).hexdigest()[:12]
    assert manifest.libraries["langid"].endswith(f" with {known}")

    def asked(*words: str) -> str:
        with redirect_stdout(io.StringIO()) as shown:
            Rethreshold.parse([str(tmp_path / "out"), *words], "rethreshold").run()
        return shown.getvalue().rstrip("\n")

    assert "zho_Hans:glm.min_chars" in asked("--threshold", "zho_Hans:glm.min_chars=120")
    assert "eng_Latn,zho_Hans -> eng_Latn" in asked("--languages", "eng_Latn")
