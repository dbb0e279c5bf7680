import pytest

from shards.storage.address import error_text, without_secrets


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://bucket/a", "s3://bucket/a"),
        ("s3://key:secret@bucket/a", "s3://bucket/a"),
        ("s3://bucket/part-?.json", "s3://bucket/part-?.json"),
        ("https://u:p@h:80/a@b?c=d#e", "https://h:80/a@b"),
        ("abfs://container@account/a", "abfs://container@account/a"),
        ("hf://datasets/o/n@main/a:b@c", "hf://datasets/o/n@main/a:b@c"),
    ],
)
def test_secrets_are_left_out(url: str, expected: str) -> None:
    assert without_secrets(url) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError("No\n  way."), "No way"),
        (OSError(), "OSError"),
        (
            OSError('Cannot GET "http://u:p@h/x?X-Amz-Signature=1f", sorry'),
            'Cannot GET "http://h/x", sorry',
        ),
        (OSError("x" * 1000), "x" * 300 + "..."),
    ],
)
def test_a_library_message_becomes_one_short_line(error: Exception, expected: str) -> None:
    assert error_text(error) == expected
