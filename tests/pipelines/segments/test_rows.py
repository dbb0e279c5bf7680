import pyarrow as pa

from pipelines.segments.rows import whole_texts


def rows(*texts: tuple[str, str]) -> pa.RecordBatch:
    prompts, bodies = ([pair[side] for pair in texts] for side in (0, 1))
    return pa.record_batch(
        {
            "prompt": pa.array(prompts, pa.large_string()),
            "text": pa.array(bodies, pa.large_string()),
        }
    )


def test_a_whole_text_is_the_prompt_and_the_text() -> None:
    assert whole_texts(rows(("问：", "答"), ("", "text"))).to_pylist() == ["问：答", "text"]


def test_without_prompts_the_texts_are_not_copied() -> None:
    batch = rows(("", "a"), ("", "b"))
    assert whole_texts(batch).buffers()[2].address == batch["text"].buffers()[2].address
