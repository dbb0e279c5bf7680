import datetime
import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from pipelines.steps.pii import EMAIL, ID, IPV4, IPV6, PHONE, mask_text, mask_texts

PIECES = st.sampled_from(
    [*"0123456789", *"+-. ()（）/@:xX，\n", "86", "138", "1234", "5678", "87654321", "010", "(212)",
     "555", "8.8.4.44", "2400:3200::1", "a@b.co", "11010519491231002X", "身份证", "元",
     EMAIL, IPV4, IPV6, PHONE, ID, "13812345678", "+44", "𠀀", "é", "a", ".com", "\ud800"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30).map("".join))
def test_masking_again_changes_nothing(text: str) -> None:
    once, _ = mask_text(text)
    assert mask_text(once) == (once, {})


@given(st.lists(st.lists(PIECES, max_size=30).map("".join), max_size=5))
def test_a_batch_is_masked_as_its_texts_are(texts: list[str]) -> None:
    masked, counts = mask_texts(texts)
    assert list(zip(masked, map(dict, counts), strict=True)) == [mask_text(text) for text in texts]


@given(st.integers(0, 2**32 - 1).map(lambda number: str(ipaddress.IPv4Address(number))))
def test_public_is_what_python_calls_global_less_multicast(address: str) -> None:
    known = ipaddress.IPv4Address(address)
    public = known.is_global and not known.is_multicast and len(address) > 7
    assert mask_text(f"({address})") == (
        (f"({IPV4})", {"ip": 1}) if public else (f"({address})", {})
    )


@given(st.dates(datetime.date(1900, 1, 1), datetime.date(2030, 1, 1)), st.integers(0, 999))
def test_of_all_check_characters_one_is_right(born: datetime.date, number: int) -> None:
    person = f"110105{born:%Y%m%d}{number:03}"
    right = [last for last in "0123456789X" if mask_text(person + last)[1] == {"id": 1}]
    assert len(right) == 1


def test_long_runs_of_digits_take_hardly_any_time() -> None:
    """A pattern that tried every grouping of the digits would never end."""
    text = "+" + "1" * 200_000 + " +" + "12 " * 50_000 + "a" * 100_000 + "@" + "b." * 50_000
    assert mask_text(text) == (text, {})
