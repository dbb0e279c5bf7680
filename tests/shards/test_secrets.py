import random
import re
import sys

import pytest

from shards.errors import UserError
from shards.secrets import has_parameters, has_user, masked, without_addresses, without_secrets


@pytest.mark.parametrize(
    ("url", "shown", "refused"),
    [
        ("s3://bucket/a", "s3://bucket/a", False),
        ("s3://bucket/part-?.json", "s3://bucket/part-?.json", False),
        ("s3://bucket/year=202?/month=1", "s3://bucket/year=202?/month=1", False),
        ("s3://bucket/a?versionId=1", "s3://bucket/a", False),
        ("s3://bucket/a?X-Amz-Signature=1f", "s3://bucket/a", True),
        ("s3://key:secret@bucket/a", "s3://bucket/a", True),
        ("abfs://container@account/a", "abfs://container@account/a", False),
        ("hf://datasets/o/n@main/a:b@c", "hf://datasets/o/n@main/a:b@c", False),
        ("sftp://user@host:22/a", "sftp://user@host:22/a", False),
        ("https://medium.com/@me/a", "https://medium.com/@me/a", False),
        ("https://token@host/a@b", "https://host/a@b", True),
        ("https://u:p@h:80/a?b=c#d", "https://h:80/a", True),
        ("https://u:p@PW@host/a", "https://host/a", True),
        ("https://u:a/PW@host/a", "https://host/a", True),
        ("https://u:a?b#c;d@PW@host/a", "https://host/a", True),
        ("https://u:p://PW@host/a", "https://host/a", True),
        ("https://u:p@h/PW@i", "https://i", True),
        ("https://host/a?sig=1", "https://host/a", True),
        ("https://host/a#sig=1", "https://host/a", True),
        ("https://host/a;sig=1", "https://host/a", True),
        ("https://host/a;b", "https://host/a", False),
        ("https://host/a%3Fsig%3D1", "https://host/a", False),
        ("s3://key%3Asecret@bucket/a", "s3://bucket/a", True),
        ("HTTPS://u:p@host/a", "HTTPS://host/a", True),
        ("https:/u:p@host/a", "https:/host/a", True),
        ("simplecache::https://u:p@host/a", "simplecache::https://host/a", True),
        ("https://proxy/https://u:p@host/a", "https://proxy/https://host/a", True),
        # Either a port and a name with an @, or a password: shown as if the second, read as if
        # the first, which is what it says.
        ("https://host:80/a@b", "https://host:…@b", False),
        ("http://[::1]:9000/a@b", "http://[:…@b", False),
        ("/data/a@b?c#d", "/data/a@b?c#d", False),
        ("hf:/data/me@home/tokenizer.json", "hf:/data/me@home/tokenizer.json", False),
    ],
)
def test_an_address_without_secrets(url: str, shown: str, refused: bool) -> None:
    assert without_secrets(url) == shown
    assert (has_user(url) or has_parameters(url)) is refused


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It (https://u:p@h/a). So", "It (https://h/a). So"),
        ("'s3://u:p@b/a' is: s3://b", "'s3://b/a' is: s3://b"),
        ("no document https://h/a?id=3&sig=4 or", "no document https://h/a?id=3&sig=*** or"),
        (
            "url: /a?X-Amz-Credential=K%2F1&X-Amz-Date=2",
            "url: /a?X-Amz-Credential=***&X-Amz-Date=2",
        ),
        ("token=abc, secret_key=d, tokens=5", "token=*** secret_key=*** tokens=5"),
        (
            "AWSAccessKeyId=K&Signature=S&tokenizer=t",
            "AWSAccessKeyId=***&Signature=***&tokenizer=t",
        ),
        ("--tokenizer hf_abcdefghijklmnopqrst: no", "--tokenizer ***: no"),
        ("AKIAIOSFODNN7EXAMPLE ASIA", "*** ASIA"),
        ("Bearer abc.def-ghi", "Bearer ***"),
        ("Basic dXNlcjpwYXNz. Basic tokenizers", "Basic ***. Basic tokenizers"),
        ("Basic Portuguese",) * 2,
        ("Authorization: Basic dTpw, a", "Authorization: ***, a"),
        ("{'Authorization': 'Basic dTpw'}", "{'Authorization': '***'}"),
        ('{"password":"x \\" y", "n": 1}', '{"password":"***", "n": 1}'),
        (r'"{\"api_key\": \"x\", \"n\": 1}"', r'"{\"api_key\": \"***\", \"n\": 1}"'),
        ("password: hunter2 and HF_TOKEN: a", "password: *** and HF_TOKEN: ***"),
        ('a token: the, "token": "b", "unk_token": "<unk>", the password:\nnone',) * 2,
        ("no file wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY.", "no file ***."),
        ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY.txt",) * 2,
        ("data/Wikipedia2024/train/part/shard00001",) * 2,
        ("aws data/Wikipedia2024/train/part/shard00001", "aws ***"),
        ("loss/token=2.3, seconds_per_token=3e-05 token=7.",) * 2,
        ("token=7abc token=1.2.3 password=123", "token=*** token=*** password=***"),
        ("/home/me/Corpus2024/wudao/tokenizers/sent",) * 2,
        ("o/n@0123456789abcdef0123456789abcdef01234567",) * 2,
        ("--input /data/a@b:c/x;y?z#d", "--input /data/a@b:c/x;y?z#d"),
        ("https://fasttext.cc/docs/en/x.html.", "https://fasttext.cc/docs/en/x.html."),
    ],
)
def test_a_message_without_secrets(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_addresses_within_addresses_without_end() -> None:
    url = "a://u:p@h/" * 2000
    assert without_secrets(url) == "a://h/"
    assert without_secrets("a://h/" * 2000 + "b://u:p@h/") == "a://h/" * 2000 + "b://h/"
    assert masked("x" * 100_000 + url) == "x" * 100_000 + "a://h/"
    assert has_user("a://h/" * 2000 + "b://u:p@h/")


def test_the_address_of_a_library_has_no_query_at_all() -> None:
    assert without_addresses("GET http://h/a?id=3, sorry") == "GET http://h/a, sorry"


def test_secrets_of_the_command_line_are_known_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [
        "x",
        "--input=a=https://u:'half /other half@host/a?sig=the rest",
        "https://h/b#Abcdefgh",
    ]
    monkeypatch.setattr(sys, "argv", words)
    assert masked(f"{words[1][8:]!r} is not there") == '"a=https://host/a" is not there'
    assert masked('Port could not be cast to integer value as "\'half "') == (
        'Port could not be cast to integer value as "***"'
    )
    assert (
        masked("host other@host is not known, other, behalf, half/x")
        == "host ***@host is not known, other, behalf, ***/x"
    )
    assert masked("the%20rest /b%23abcdefgh") == "*** /b%23***"


@pytest.mark.parametrize(
    "url",
    [
        "file:///tmp/e2e/pa?t/documents/x.jsonl",
        "s3://bucket/data/????-train.jsonl",
        "s3://bucket/R&D/corpus/train.jsonl",
        "s3://bucket/C#/year=2024;month=10/train.jsonl",
        "hf://datasets/o/n@main/a&b=train/part-?.parquet",
        "/data/pa?t/R&D/key=documents/x.jsonl",
    ],
)
def test_words_of_a_path_are_no_secrets(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not has_user(url)
    assert not has_parameters(url)
    for word in (url, f"--input=a={url}"):
        monkeypatch.setattr(sys, "argv", ["x", "--input", word])
        words = " ".join(re.split("[/?#;&=]+", url))
        assert masked(words) == words


def test_an_error_tells_no_secret_wherever_it_goes() -> None:
    error = UserError("https://u:p@h/a cannot be read ([Errno 5] GET /a?Signature=S)")
    assert str(error) == "https://h/a cannot be read ([Errno 5] GET /a?Signature=***)"


def test_names_of_documents_are_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["x", "--id", "https://h/a?id=33333", "--url=https://h/a?q=*"])
    assert masked("there is no document https://h/a?id=33333") == (
        "there is no document https://h/a?id=33333"
    )


def test_words_beside_secrets_are_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTITION_KEY", "documents")
    monkeypatch.setenv("EOS_TOKEN", "<|endOfText2|>")
    urls = ["https://u:train@h/a?download=true&n=1000&part=documents", "https://h/R&D/corpora/a"]
    monkeypatch.setattr(sys, "argv", ["x", *urls])
    shown = "train: 1000 documents are true, <|endOfText2|> corpora"
    assert masked(shown) == shown
    assert masked("u:train@h 'train'") == "u:***@h '***'"


def test_secrets_of_the_environment_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalr/XUtn+FEMI=")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:proxyword@proxy:3128")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "disabled")
    monkeypatch.setenv("MY_TOKEN", "short")
    monkeypatch.setenv("MY_KEY", "Ab1defgh")
    monkeypatch.setenv("DB_PASSWORD", "documents")
    assert masked("ab1defgh documents") == "*** ***"
    assert masked("a wjalr/xutn+femi= wJalr%2FXUtn%2BFEMI%3D proxyword disabled short") == (
        "a *** *** *** disabled short"
    )


SCHEMES = ("https", "HTTP", "s3", "gs", "hf", "sftp", "abfs", "simplecache::https", "x-y.z")
LETTERS = "ABCDEFabcdef0123456789"
SIGNS = "/+=@:?#;&%'\" \\.~_-"


def odd_addresses(seed: int) -> tuple[str, str]:
    """Return an address in some odd form, and the secret in it."""
    choices = random.Random(seed)
    middle = "".join(choices.choices(LETTERS + SIGNS, k=choices.randint(0, 12)))
    ends = ["".join(choices.choices(LETTERS, k=4)) for _ in range(2)]
    secret = f"{ends[0]}{middle}{ends[1]}"
    scheme = choices.choice(SCHEMES)
    odd = "".join(choices.choices(SIGNS + "ab1", k=3))
    token, nameless = secret.replace("/", ""), f"1a{secret.replace('=', '')}"
    forms = [
        (f"{scheme}://u:{secret}@host/x", secret),
        (f"{scheme}://u:{odd}{secret}@host/{odd}", odd + secret),
        (f"{scheme}://:{secret}@host:80/x", secret),
        (f"{scheme}://u:p@{secret}@host/x?y", secret),
        (f"{scheme}://u:a/{secret}@host/{odd}", secret),
        (f"{scheme}://host/x?a=1&X-Amz-Signature={secret}", secret),
        (f"{scheme}://host/x#sig={secret}", secret),
        (f"{scheme}://host/x;sig={secret}", secret),
        (f"{scheme}://proxy/https://u:{secret}@host/x", secret),
        (f"https://host/x?{nameless}", nameless),
        (f"https://host/x?q=a&sig={secret}", secret),
        (f"https://{token}@host/x", token),
    ]
    url, secret = choices.choice(forms)
    before = choices.choice(("", "hf:", "sentencepiece:", "a=", "a=pile:", "--input="))
    return f"{before}{url}", secret


def test_odd_addresses_keep_their_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(250):
        word, secret = odd_addresses(seed)
        monkeypatch.setattr(sys, "argv", ["x", word])
        assert secret not in without_secrets(word), seed
        for said in (
            f"{word} is not there",
            f"{word!r}: no",
            f"cannot read {word.partition('://')[2]}: gone",
            f"url: {secret!r}",
            f"for {secret.lower()}",
        ):
            assert secret.lower() not in masked(said).lower(), (seed, said)
