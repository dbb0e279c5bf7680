"""Personal numbers and addresses, and texts that only look like them."""

import ipaddress
from collections.abc import Iterator
from pathlib import Path

from tests.golden.corpora import write_jsonl
from tests.golden.corpus_words import write_texts

_EMAILS = """
    anna@mail.org anna.b+tag@mail.co.uk ANNA@MAIL.ORG anna@mail anna@mail.x anna@mail.xy @mail.org
    .anna@mail.org anna.@mail.org an..na@mail.org a@b.com@c.org anna@mail.org,ben@mail.org
    anna@-mail.org anna@mail-.org anna@m-l.org anna@mail.xn--p1ai anna@mail.123 anna@1.2.3.44
    anna@mail.org1 anna@mail.org. anna@mail.org/x anna_b@mail.org an'na@mail.org <anna@mail.org>
    anna@example.com anna@sub.example.net anna@example.org anna@examples.com anna@host.example
    anna@host.invalid anna@host.test anna@localhost anna@a.localhost anna@notest.org
    logo@2x.png logo@2x.jpg logo@2x.jpeg logo@2x.gif logo@2x.css logo@2x.js logo@2x.svg logo@2x.webp
    logo@2x.pn ssh://git@github.com/x anna(at)mail.org
""".split()  # noqa: SIM905  more readable

_MOBILES = (
    "13812345678", "12812345678", "19912345678", "1381234567", "138123456789", "138 1234 5678",
    "138-1234-5678", "138-1234 5678", "138.1234.5678", "+8613812345678", "+86 13812345678",
    "+86-138-1234-5678", "008613812345678", "8613812345678", "+87 13812345678", "a13812345678",
    "13812345678a", "13812345678 a", "_13812345678", "13812345678_", "13812345678.5",
    "13812345678.", "13812345678-1", "1234567/13812345678", "123456/13812345678", "3.13812345678",
    "7-13812345678", "7 13812345678", "13812345678,13912345678", "１３８12345678",
)  # fmt: skip
_BEFORE = "=&#%$€£¥￥@\\/:(（"
_UNITS = (
    "元", "圆", "美元", "欧元", "万", "亿", "字节", "人民币", " 元", "  元", "角",
    "％", "%", "‰", "@",
)  # fmt: skip
_LANDLINES = (
    "010-62345678", "010-12345678", "010-92345678", "(010)62345678", "（010）62345678",
    "（010）-62345678", "（010） 62345678",
    "(010) 6234-5678", "010 62345678", "01062345678", "021-6234567", "0755-23456789",
    "0755-2345678", "0155-23456789", "0755-23456789-1", "0755-23456789-12345",
    "0755-23456789-123456", "+86 10 6234 5678", "+86 (10) 62345678", "+86(010)62345678",
    "400-800-1234", "800-820-8820", "0755 2345 6789", "(0755)234-5678", "62345678",
)  # fmt: skip
_AMERICAN = (
    "(212) 555-2368", "(212)555-2368", "212-555-2368", "212.555.2368", "212 555 2368",
    "212-555.2368", "1-212-555-2368", "+1 (212) 555-2368", "+1.212.555.2368", "12125552368",
    "112-555-2368", "212-155-2368", "212-555-236", "212-555-23689", "800-555-2368", "900-555-2368",
    "801-555-2368", "212-555-0100", "555-0100", "555-2368", "(800) 555-2368", "(212 555-2368",
)  # fmt: skip
_WORLD = (
    "+44 20 7946 0958", "+442079460958", "+44 (0)20 7946 0958", "+44 12345 6", "+44 12345 67",
    "+44 12345 678",
    "+49 30 123456789012", "+49 30 12345678901", "+49 30 1234567890123", "+0 20 7946 0958",
    "+4 20", "=+44 20 7946 0958", "1+442079460958", "+33-1-23-45-67-89", "+44 20 7946 0958 元",
    "+1234 567 890", "++442079460958",
)  # fmt: skip


def personal(folder: Path) -> None:
    """Write a record for each of the numbers and addresses."""
    kinds = {
        "email": [*_EMAILS, *_long_emails()],
        "ip": [*_addresses(), *_NO_ADDRESSES],
        "ip of six": _SIX,
        "mobile": [*_MOBILES, *(f"{mark}13812345678" for mark in _BEFORE)],
        "amount": [f"13812345678{unit}" for unit in _UNITS],
        "landline": _LANDLINES,
        "american": _AMERICAN,
        "world": _WORLD,
        "identity": [*_identities()],
        "old identity": [*_old_identities()],
    }
    texts = {
        f"{kind} {number:02}: {_safe(value)}": f"Write to {value} today.\n请联系{value}，谢谢。"
        for kind, values in kinds.items()
        for number, value in enumerate(values)
    }
    texts["masked: nothing changes again"] = (
        "email@example.com 192.0.2.1 2001:db8::1 555-0100 000000000000000000"
    )
    texts["many: in one text"] = "\n".join([*_EMAILS, *_MOBILES, *_LANDLINES, *_AMERICAN])
    write_texts(folder / "personal" / "personal.jsonl", texts)


def questions(folder: Path) -> None:
    """Write questions with answers for Zhidao, with personal data and damage in both parts."""
    values = ("13812345678", "anna@mail.org", "8.8.8.88", "没有")
    answer = "请打{}，或者写信给他们的办公室，地址在网站上可以找到。"
    records = [
        {
            "title": f"怎么联系{value}？",
            "content": "cafÃ© 的电话是多少",
            "best_answer": {"content": answer.format(value)},
            "other_answers": [{"content": answer.format("8.8.4.44") * 4}],
        }
        for value in values
    ]
    write_jsonl(folder / "questions" / "questions.json", records)


def _safe(value: str) -> str:
    return value.replace('"', "").replace("\\", "backslash ")[:40]


def _long_emails() -> Iterator[str]:
    for letters in (63, 64, 65):
        yield f"{'a' * letters}@mail.org"
        yield f"anna@{'m' * letters}.org"
        yield f"anna@mail.{'o' * letters}"


_NETWORKS = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
    192.0.2.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3
""".split()  # noqa: SIM905  as above
_NO_ADDRESSES = (
    "8.8.8.8", "8.8.8.88", "256.8.8.88", "8.8.8.888", "v8.8.8.88", "8.8.8.88.8", "8.8.88",
    "08.8.8.88", "8.8.8.88:80", "8.8.8.88a", "8.8.8.88.", "8.8.8.88.x", "_8.8.8.88", ".8.8.8.88",
    "http://8.8.8.88/x", "8.8.8.88-8.8.8.99",
)  # fmt: skip
_SIX = (
    "2400:cb00::1", "2001:db8::1", "2001:db8:ffff::1", "2001:db9::1", "2001:db7:ffff::1",
    "1fff::1", "3fff::1", "4000::1", "fe80::1", "::1", "2400:CB00:0:0:0:0:0:1", "2400:cb00",
    "2400:cb00::1::2", "2400:cb00::1.", "2400:cb00::1x", "x2400:cb00::1", "2020:12:11",
    "2400:cb00:1:2:3:4:5:6:7",
)  # fmt: skip


def _addresses() -> Iterator[str]:
    """Yield the first and last address of each non-public network, and those next to these."""
    for network in map(ipaddress.IPv4Network, _NETWORKS):
        for address in (network[0], network[-1]):
            yield str(address)
        for outside in (int(network[0]) - 1, int(network[-1]) + 1):
            if 0 <= outside < 1 << 32:
                yield str(ipaddress.IPv4Address(outside))


def _identities() -> Iterator[str]:
    for region, born in (
        ("110101", "19900307"), ("101010", "19900307"), ("160101", "19900307"),
        ("830101", "19900307"), ("840101", "19900307"), ("710101", "19900307"),
        ("720101", "19900307"), ("540101", "19900307"), ("550101", "19900307"),
        ("110101", "18791231"), ("110101", "18800101"), ("110101", "20991231"),
        ("110101", "21000101"), ("110101", "19900229"), ("110101", "19920229"),
        ("110101", "19901301"),
    ):  # fmt: skip
        yield _checked(f"{region}{born}123")
    right = _checked("11010119900307123")
    yield from (right[:-1] + digit for digit in "0123456789X")
    with_x = next(_checked(f"11010119900307{n:03}") for n in range(999) if _ends_in_x(n))
    yield from (with_x, with_x.lower(), f"{with_x[:-1]}0", f"{right}1", f"a{right}", f"{right}a")
    yield from (f".{right}", f"{right}.5", f"{right}.", f"{right[:6]} {right[6:]}", f"{right}元")


def _ends_in_x(number: int) -> bool:
    return _checked(f"11010119900307{number:03}").endswith("X")


def _checked(digits: str) -> str:
    """Return 17 digits, followed by the check character (ISO 7064, MOD 11-2)."""
    total = sum(int(digit) * 2 ** (17 - at) for at, digit in enumerate(digits))
    return digits + "10X98765432"[total % 11]


def _old_identities() -> Iterator[str]:
    number = "110101900307123"
    for gap in (0, 16, 17, 18):
        yield f"身份证{'：' * gap}{number}"
    yield from (number, f"身份{number}", "身份证110101900229123", "身份证110101901307123")
    yield from ("身份证110101920229123", f"身份证{number}1", f"身份证{number[:-1]}")
