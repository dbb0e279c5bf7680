import re
from pathlib import Path

import pytest

import pipelines.report.page
from pipelines.report.languages import chinese, language_tag

TEMPLATES = Path(pipelines.report.page.__file__).parent / "templates"


@pytest.mark.parametrize(
    ("label", "tag"),
    [
        ("zh", "zh"),
        ("en", "en"),
        ("zho_Hans", "zh-Hans"),
        ("zh-TW", "zh-TW"),
        ("jpn_Jpan", "ja-Jpan"),
        ("yue", "yue"),
        ("und", "und"),
        (None, ""),
        ("", ""),
        ('"><b>', ""),
        ("high quality", ""),
    ],
)
def test_labels_of_models_become_tags(label: str | None, tag: str) -> None:
    assert language_tag(label) == tag


def test_whatever_a_template_names_in_both_languages_has_a_chinese_name() -> None:
    texts = [path.read_text() for path in TEMPLATES.glob("*.j2")]
    lists = re.findall(
        r"table\([^\[]*\[(.*?)\]|heads = \[(.*?)\]|for head in \[(.*?)\]", "".join(texts)
    )
    named = re.findall(r'both\("(.*?)"\)', "".join(texts))
    named += re.findall(r'"(.*?)"', ",".join("".join(group) for group in lists))
    assert len(named) > 60
    assert not [name for name in named if name and not chinese(name)]
    assert chinese("a name of a metric") == ""
