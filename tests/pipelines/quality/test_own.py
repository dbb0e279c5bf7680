"""Profiles and word splitters of one's own, from a module on the path."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.compiled import use_native
from pipelines.corpus.code import code_hash
from pipelines.quality import Quality
from pipelines.run.build import build
from shards.errors import UserError
from tests.pipelines.runs import page, small, write_wudao

RULES = """
from pipelines.quality import Profile, Threshold


def marks(text, bounds):
    return text, (text.text.count("!"),)


clickbait = Profile(
    family="clickbait", metrics=("marks",), thresholds=(Threshold("max_marks", 4, "many"),),
    measure=marks,
)


def pairs(text):
    return [text[at : at + 2] for at in range(0, len(text), 2)]


class Pairs:
    def __call__(self, text):
        return pairs(text)
"""


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of the module rules_of_mine."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "rules_of_mine.py").write_text(RULES)
    monkeypatch.syspath_prepend(str(folder))
    yield folder / "rules_of_mine.py"
    forget()


def forget() -> None:
    sys.modules.pop("rules_of_mine", None)
    importlib.invalidate_caches()
    code_hash.cache_clear()


def test_an_installed_profile_has_a_short_name(rules: Path) -> None:
    about = rules.parent / "mine-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    entry = "[corpusmill.profiles]\nshouting = rules_of_mine:clickbait\n"
    (about / "entry_points.txt").write_text(entry)
    judged = Quality.parse(["shouting"]).judge(["Wow!!!!", "Wow!!!!!"], ["en", "en"])
    assert judged.reasons == [None, "clickbait-many"]
    with pytest.raises(UserError, match="did you mean shouting"):
        Quality.parse(["shoutin"])


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ["pairs", "Pairs"])
def test_a_splitter_in_place_of_jieba_and_of_spaces(name: str, *, compiled: bool) -> None:
    spec = f"@rules_of_mine:{name}="
    quality = Quality.parse([f"zh{spec}gopher", f"en{spec}c4+gopher"])
    use_native(compiled)
    text = "This is the first line of six words, and more. " * 4
    judged = quality.judge(["人工智能正在改变", text], ["zh", "en"])
    left = judged.texts[1]
    words = [left[at : at + 2].strip() for at in range(0, len(left), 2)]
    assert judged.metrics["gopher.words"].tolist() == [4, sum(map(bool, words))]
    assert quality.engines == {
        "code of rules_of_mine": f"rules_of_mine {code_hash('rules_of_mine')}"
    }


def test_a_dataset_is_not_continued_with_other_code(rules: Path, tmp_path: Path) -> None:
    write_wudao(tmp_path / "in" / "part-1.json", [page(0)])
    options = small(tmp_path / "out", tmp_path / "in", quality=("zh=rules_of_mine:clickbait",))
    build("pipelines.wudao", options)
    rules.write_text(RULES.replace('"!"', '"?"'))
    forget()
    with pytest.raises(
        UserError, match=r"the code of --quality \(rules_of_mine\) was edited since"
    ):
        build("pipelines.wudao", options)
