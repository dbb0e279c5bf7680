"""Makes UTF-8 of bytes that are not: what is invalid becomes U+FFFD."""

import re

import pyarrow as pa

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""An escape in JSON: a pair of surrogates, a lone one, or another."""


def mend_text(raw: bytes) -> bytes:
    """Return the bytes with invalid sequences replaced as WHATWG's decoder replaces them."""
    return raw.decode("utf-8", "replace").encode()


def mend_json(raw: bytes) -> bytes:
    r"""Return the bytes of JSON mended as text, and its lone surrogates (\ud800) replaced too."""
    return _ESCAPE.sub(lambda match: rb"\ufffd" if match["lone"] else match[0], mend_text(raw))


def mend_row(row: pa.RecordBatch | pa.Table) -> pa.Table:
    """Return rows with their columns of strings mended; strings inside lists stay as they are."""
    columns = [
        pa.array([_mended(value) for value in column.cast(_binary(column.type)).to_pylist()])
        if _is_string(column.type)
        else column
        for column in row.columns
    ]
    return pa.table(columns, names=row.schema.names)


def _mended(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")


def _is_string(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _binary(data_type: pa.DataType) -> pa.DataType:
    return pa.binary() if pa.types.is_string(data_type) else pa.large_binary()
