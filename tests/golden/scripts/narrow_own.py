"""A corpus with a custom reader, whose records have at most 200 bytes."""

from pipelines.corpus import CorpusSpec, Document, InputFormat, Options, required_text, text_columns


def pages(stream):
    for line in stream:
        yield {"id": line[:12].decode(), "text": line.decode().rstrip("\n")}


def documents(record, options):
    return (Document(required_text(record, "text"), {"id": str(record.get("id", ""))}),)


CORPUS = CorpusSpec(
    name="own",
    about="Narrow records.",
    pattern="*",
    options=Options,
    input_format=InputFormat(read=pages, text_fields=("text",), max_record_bytes=200),
    provenance=text_columns("id"),
    documents=documents,
)
