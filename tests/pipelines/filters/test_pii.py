import datetime
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.filters.pii import EMAIL, ID, IPV4, IPV6, KINDS, PHONE, mask_text, mask_texts

MASKED = [
    ("write to jane.doe+news@mail.uni-bonn.de.", f"write to {EMAIL}.", {"email": 1}),
    ("邮箱abc_1@qq.com谢谢", f"邮箱{EMAIL}谢谢", {"email": 1}),
    ("a@b.co.uk, c@d.com-x; b.a@b.co", f"{EMAIL}, {EMAIL}-x; {EMAIL}", {"email": 3}),
    ("mail 13812345678@163.com now", f"mail {EMAIL} now", {"email": 1}),
    ("at [2a00:1450:4001:81b::200e]:80", f"at [{IPV6}]:80", {"ip": 1}),
    ("手机：138 1234 5678。", f"手机：{PHONE}。", {"phone": 1}),
    ("13812345678,13912345678/15912345678", f"{PHONE},{PHONE}/{PHONE}", {"phone": 3}),
    ("010-87654321转8012", f"{PHONE}转8012", {"phone": 1}),
    ("+86 (0)10 8765 4321", PHONE, {"phone": 1}),
    # The first is the example of GB 11643-1999.
    ("身份证11010519491231002X。", f"身份证{ID}。", {"id": 1}),
    (
        "𠀀身份证11010519491231002X𠀀13812345678𠀀",
        f"𠀀身份证{ID}𠀀{PHONE}𠀀",
        {"id": 1, "phone": 1},
    ),
]

LEFT = [
    "user@localhost, a@b, @name, a@@b.com., @media.screen",
    "192.168.1.10 10.0.0.254 127.0.0.1 172.31.255.1 100.64.10.1 224.0.0.251 255.255.255.0",
    "version 1.2.3.4, section 4.1.2.9, v10.20.30.40, 10.20.30.40.50, 1.22.333.4444, 08.08.2008.10",
    "at 12:30:45, 2023:10:05 12:00:00, std::dead::beef, ::1, fe80::1:2, 2001:db8::7, 2001::g",
    "on 2023-10-12 13:00, 2024-01-01 2024-01-02, 20081208 2004, 2008/09/15 20:20:20",
    "ISBN 978-7-302-12345-6, ISBN 7-302-12345-6, ISBN 978-0-201-555-1234, ISBN 9787302123456",
    "13812345678元，￥13812345678, $13812345678, 13812345678 万, 13812345678%, 13,812,345,678",
    "138123456789, 913812345678, x13812345678, 13812345678x, 0.13812345678, 13812345678.5",
    "12812345678, 138 12345678 9, 5 138 1234 5678, 2019-138-1234-5678, /page/13812345678.html",
    "000-12345678, 010-17654321, 010-876543, 0101-87654321x",
    "212 555 1234, 2125551234, 112-555-1234, 212-155-1234, 212-555.1234, 978-212-555-1234",
    "110105194912310021, 11010519491331002X, 99010519491231002X, 110105491231002, 111111111111111",
    "0x000000000000001e bg2019053104.jpg 393731333534 6217 0012 3456 7890 123",
    "1 2 3 4 5 6 7 8 9 10 11 12 13 (14) 15 16",
    "400-810-8888, 800-810-8888, 1-800-356-9377, (800) 356-9377, 110, 12306, 95588",
]


@pytest.mark.parametrize(("text", "masked", "counts"), MASKED)
def test_what_is_masked(text: str, masked: str, counts: dict[str, int]) -> None:
    assert mask_text(text) == (masked, counts)


@pytest.mark.parametrize("text", LEFT)
def test_what_only_looks_alike_stays_the_same_object(text: str) -> None:
    masked, counts = mask_text(text)
    assert (masked, counts) == (text, {})
    assert masked is text


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_kinds_asked_for_are_masked(kind: str) -> None:
    text = "a@b.co 8.8.4.44 13812345678 11010519491231002X"
    masked, counts = mask_text(text, kinds=(kind,))
    assert counts == {kind: 1}
    assert sum(old == new for old, new in zip(text.split(), masked.split(), strict=True)) == 3
    assert mask_text(text, kinds=()) == (text, {})


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
    """Patterns that try every way of grouping digits would take for ever."""
    text = "+" + "1" * 200_000 + " +" + "12 " * 50_000 + "a" * 100_000 + "@" + "b." * 50_000
    assert mask_text(text) == (text, {})
