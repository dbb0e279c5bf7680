import pytest

from shards.secrets import has_parameters, has_user, without_secrets


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
        # A port, and a name that contains an @.
        ("https://host:80/a@b", "https://host:80/a@b", False),
        ("http://[::1]:9000/a@b", "http://[::1]:9000/a@b", False),
        ("/data/a@b?c#d", "/data/a@b?c#d", False),
        ("hf:/data/me@home/tokenizer.json", "hf:/data/me@home/tokenizer.json", False),
    ],
)
def test_an_address_without_secrets(url: str, shown: str, refused: bool) -> None:
    assert without_secrets(url) == shown
    assert (has_user(url) or has_parameters(url)) is refused


def test_addresses_within_addresses_without_end() -> None:
    url = "a://u:p@h/" * 2000
    assert without_secrets(url) == "a://h/"
    assert without_secrets("a://h/" * 2000 + "b://u:p@h/") == "a://h/" * 2000 + "b://h/"
    assert has_user("a://h/" * 2000 + "b://u:p@h/")


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
def test_words_of_a_path_are_no_secrets(url: str) -> None:
    assert not has_user(url)
    assert not has_parameters(url)
