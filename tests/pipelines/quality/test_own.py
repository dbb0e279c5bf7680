"""Profiles and word splitters of one's own, from a module on the path."""

import importlib
import io
import logging
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from pipelines.corpus.code import OWN_CODE, code_hash
from pipelines.map.mapper import Job, Mapper
from pipelines.quality import Quality
from pipelines.quality.catalog import REASONS, find_profile
from pipelines.quality.selection import parse_selection
from pipelines.rethreshold import Rethreshold
from pipelines.run.build import build
from shards.errors import UserError
from shards.manifest import Manifest
from shards.storage.files import read_json
from tests.pipelines.runs import page, small, write_wudao

RULES = """
from functools import cache

from pipelines.quality import NAN, SPACES, Profile, Threshold


def marks(text, bounds):
    return text, (sum(map(text.text.count, "!！")) / max(1, len(text.text)), len(text.text))


clickbait = Profile(
    family="clickbait",
    metrics=("marks", "chars"),
    thresholds=(
        Threshold("max_marks", 0.05, "many-marks", "most exclamation marks, a share"),
        Threshold("min_chars", NAN, "few-chars"),
    ),
    measure=marks,
)


def lines(text, bounds):
    return text.replaced(text.text.split("\\n")[0]), (len(text.words(SPACES)),)


first_line = Profile(
    family="first-line", metrics=("words",), measure=lines, words=SPACES,
    thresholds=(Threshold("min_words", 3, "few-words"),),
)
same_name = Profile(family="clickbait", metrics=("x",), thresholds=(), measure=marks)
taken = Profile(family="glm", metrics=("x",), thresholds=(), measure=marks)
odd = Profile(
    family="odd", metrics=("x",), thresholds=(Threshold("most_x", 1, "x"),), measure=marks
)
wrong = Profile(family="wrong", metrics=("x",), thresholds=(), measure=lambda text, _: 1 / 0)
short = Profile(family="short", metrics=("x",), thresholds=(), measure=lambda text, _: (text, ()))
number = 5


def pairs(text):
    return [text[at : at + 2] for at in range(0, len(text), 2)]


class Pairs:
    def __call__(self, text):
        return pairs(text)


def whole(text):
    return text
"""

JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"


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


@pytest.mark.usefixtures("rules")
def test_a_profile_of_ones_own_is_one_like_any_other() -> None:
    quality = Quality.parse(["en=rules_of_mine:clickbait+glm"], ["clickbait.max_marks=0.2"])
    texts = ["Wow!!!!!", "a quiet sentence. " * 9, "Hey! " * 30, "short"]
    judged = quality.judge(texts, ["en"] * 4)
    assert quality.columns == ("glm.chars", "clickbait.marks", "clickbait.chars")
    assert judged.reasons == ["clickbait-many-marks", None, None, "glm-few-chars"]
    assert judged.metrics["clickbait.marks"][0] == np.float32(5 / 8)
    assert quality.all_reasons == (*REASONS, "clickbait-many-marks", "clickbait-few-chars")
    assert quality.own == {"rules_of_mine": code_hash("rules_of_mine")}
    assert quality.engines == {
        "code of rules_of_mine": f"rules_of_mine {code_hash('rules_of_mine')}"
    }
    stricter = Quality.parse(["en=rules_of_mine:clickbait"], ["en:clickbait.min_chars=6"])
    assert stricter.judge(["short"], ["en"]).reasons == ["clickbait-few-chars"]


@pytest.mark.usefixtures("rules")
def test_it_may_pass_on_less_and_count_words() -> None:
    quality = Quality.parse(["rules_of_mine:first_line"], compiled=True)
    judged = quality.judge(["one two three four\nand more", "a b"], ["en", "en"])
    assert judged.texts == ["one two three four", "a b"]
    assert judged.reasons == [None, "first-line-few-words"]
    assert judged.metrics["first-line.words"].tolist() == [6, 2]


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rules_of_mine:clickbate", r'"rules_of_mine:clickbate": .*rules_of_mine\.py defines no'),
        ("rules_of_yours:x", "there is no module rules_of_yours"),
        ("rules_of_mine:", "not written as MODULE:NAME, such as my.rules:profile"),
        ("rules_of_mine:number", "is a int, not a Profile"),
        ("rules_of_mine:taken", "a profile of this package is called 'glm'"),
        ("rules_of_mine:odd", "threshold 'most_x' is not called min_x, max_x"),
        (
            "en=rules_of_mine:clickbait,zh=rules_of_mine:same_name",
            "Two quality profiles are called",
        ),
        ("clickbate", "is no quality profile.*one of your own is written MODULE:NAME"),
    ],
)
def test_what_is_no_profile(spec: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_selection(spec.split(","))


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "wrong",
            r"rules_of_mine:wrong: its measure\(\) fails on a text that begins 'a text': Zero",
        ),
        ("short", "it returns a MeasuredText and 0 metrics, not a MeasuredText and 1"),
    ],
)
def test_what_fails_says_where(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Quality.parse([f"rules_of_mine:{name}"]).judge(["a text"], ["en"])


def test_an_installed_profile_has_a_short_name(rules: Path) -> None:
    about = rules.parent / "mine-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    entry = "[corpusmill.profiles]\nshouting = rules_of_mine:clickbait\n"
    (about / "entry_points.txt").write_text(entry)
    assert find_profile("shouting") == find_profile("rules_of_mine:clickbait")
    with pytest.raises(UserError, match="did you mean shouting"):
        find_profile("shoutin")


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ["pairs", "Pairs"])
def test_a_splitter_lets_profiles_judge_words(
    name: str, compiled: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(UserError, match="ja@MODULE:FUNCTION=gopher"):
        parse_selection(["ja=gopher"])
    spec = f"ja@rules_of_mine:{name}=gopher+gopher-repetition"
    quality = Quality.parse([spec], ["gopher.min_words=17"], compiled=compiled)
    with caplog.at_level(logging.WARNING):
        judged = quality.judge([JAPANESE, JAPANESE[:20]], ["ja", "ja"])
    assert caplog.text == ""
    assert judged.metrics["gopher.words"].tolist() == [(len(JAPANESE) + 1) // 2, 10]
    assert judged.metrics["gopher.word_length"][1] == 2
    assert judged.reasons[1] == "gopher-few-words"
    assert quality.engines == {
        "code of rules_of_mine": f"rules_of_mine {code_hash('rules_of_mine')}"
    }


@pytest.mark.usefixtures("rules")
def test_a_splitter_in_place_of_jieba_and_of_spaces() -> None:
    quality = Quality.parse(["zh@rules_of_mine:pairs=gopher", "en@rules_of_mine:pairs=c4+gopher"])
    text = "This is the first line of six words, and more. " * 4
    judged = quality.judge(["人工智能正在改变", text], ["zh", "en"])
    left = judged.texts[1]
    words = [left[at : at + 2].strip() for at in range(0, len(left), 2)]
    assert judged.metrics["gopher.words"].tolist() == [4, sum(map(bool, words))]
    assert "jieba" not in quality.engines.get("words", "")


@pytest.mark.usefixtures("rules")
def test_a_splitter_that_is_none() -> None:
    quality = Quality.parse(["ja@rules_of_mine:whole=gopher"])
    with pytest.raises(
        UserError, match=r"splitter rules_of_mine:whole: it fails on .*not the words"
    ):
        quality.judge([JAPANESE], ["ja"])
    with pytest.raises(UserError, match=r"rules_of_mine:number.* is no function"):
        Quality.parse(["ja@rules_of_mine:number=gopher"]).judge([JAPANESE], ["ja"])
    with pytest.raises(UserError, match=r"word splitter .*defines no nothing"):
        parse_selection(["ja@rules_of_mine:nothing=gopher"])


SPECS = ("zh=rules_of_mine:clickbait+glm",)


@pytest.fixture
def dataset(rules: Path, tmp_path: Path) -> Path:
    """The folder of a dataset judged by a profile of one's own; every other page shouts."""
    assert rules
    pages = [page(at, "好消息！" * 20 if at % 2 else "") for at in range(10)]
    write_wudao(tmp_path / "in" / "part-1.json", pages)
    make(tmp_path / "out", tmp_path / "in")
    return tmp_path / "out"


def make(output: Path, folder: Path) -> Manifest:
    return build("pipelines.wudao", small(output, folder, quality=SPECS))


def asked(dataset: Path, *words: str) -> str:
    with redirect_stdout(io.StringIO()) as shown:
        Rethreshold.parse([str(dataset), *words], "rethreshold").run()
    return shown.getvalue().rstrip("\n")


def test_a_dataset_knows_its_profile_and_is_judged_again(dataset: Path, rules: Path) -> None:
    report = read_json(dataset / "report.json")
    (lost,) = [row for row in report["funnel"]["wudao"] if row["reason"] == "clickbait-many-marks"]
    assert (lost["stage"], lost["rows"]) == ("quality", 5)
    (table,) = read_json(dataset / "manifest.json")["generations"][0]["audit"]
    assert "clickbait.marks" in pq.read_schema(dataset / table["path"]).names
    same = asked(dataset)
    assert "zh:clickbait.max_marks" in same
    assert "all figures are exact" in same
    looser = asked(dataset, "--threshold", "clickbait.max_marks=off")
    assert "0.05 -> off" in looser
    with pytest.raises(UserError, match="clickbait has no threshold"):
        asked(dataset, "--threshold", "clickbait.max_mark=1")
    rules.write_text(RULES.replace('"!！"', '"!！?"'))
    forget()
    with pytest.raises(
        UserError, match=r"the code of rules_of_mine .*was edited since the dataset"
    ):
        asked(dataset)
    with pytest.raises(
        UserError, match=r"the code of --quality \(rules_of_mine\) was edited since"
    ):
        make(dataset, dataset.parent / "in")
    rules.unlink()
    forget()
    with pytest.raises(UserError, match="made with rules_of_mine, a module that is not here"):
        asked(dataset)


def test_a_worker_with_other_code_refuses(dataset: Path) -> None:
    assert OWN_CODE in read_json(dataset / "manifest.json")["options"]["quality"]
    options = small(dataset.parent / "other", dataset.parent / "in", quality=SPECS)
    job = Job(options=options, corpora={}, versions={"code of rules_of_mine": "0123456789abcdef"})
    with pytest.raises(
        UserError, match=r"has code of rules_of_mine .*, the driver 0123456789abcdef"
    ):
        Mapper(job)
