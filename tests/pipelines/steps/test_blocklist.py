from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.steps.blocklist import load_blocklist


@given(st.text(), st.lists(st.text(alphabet="ab./?#:@%[]ü "), max_size=4))
def test_any_text_may_come_as_a_url(
    tmp_path_factory: pytest.TempPathFactory, text: str, others: list[str]
) -> None:
    path = tmp_path_factory.mktemp("list") / "domains"
    path.write_text("ab.example\n")
    blocked = load_blocklist([str(path)]).blocked([*others, text, "http://ab.example/"])
    assert blocked.tolist()[-1] is True
    assert len(blocked) == len(others) + 2


def test_a_line_in_another_encoding_is_an_entry_too(tmp_path: Path) -> None:
    (tmp_path / "domains").write_bytes("bad.org/café\n".encode("latin-1"))
    assert load_blocklist([str(tmp_path / "domains")]).blocked(["http://bad.org/caf%C3%A9"])[0]
