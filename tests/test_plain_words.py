"""The script of `make lint` finds phrases in sentences, but not in code or other text."""

from pathlib import Path

import pytest

from tests import plain_words


@pytest.mark.parametrize(
    ("line", "phrase"),
    [
        ('"""What a file holds."""', "What"),
        ('"""What does a file hold?"""', None),
        ('"""Return what a file holds."""', "Return what"),
        ('"""Say what to do next."""', None),
        ("# The table lies\n# in memory.", "lies in"),
        ("# It is `beside` code.", None),
        ('raise ValueError(f"{name} is no file: go on")', "go on"),
        ('print("10 rows a shard")', "rows a shard"),
        ('"""Shards of so many tokens."""', "so many"),
        ('"""There are so many tokens that it fails."""', None),
        ('"""The most tokens of a shard."""', "The most tokens"),
        ('"""Whether the most common word is long."""', None),
        ('names = ["beside"]', None),
        ("MOST_ROWS = 1", "MOST_ROWS"),
    ],
)
def test_a_phrase_is_found_where_it_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, phrase: str | None
) -> None:
    monkeypatch.setattr(plain_words, "ROOT", tmp_path)
    (tmp_path / "module.py").write_text(f"\n\n{line}\n")
    found = [*plain_words.findings(tmp_path / "module.py")]
    assert phrase in {each.phrase for each in found} or (phrase is None and not found)
    assert all(each.line in (3, 4) for each in found)
