"""A filter with a regular expression: drops texts that contain phrases of advertisements.

python -m pipelines.wudao --filter no_ads:no_ads
"""

import re

import pyarrow as pa

PHRASES = re.compile(r"限时优惠|点击购买|加微信|电话|click here|buy now", re.IGNORECASE)


def no_ads(batch: pa.RecordBatch) -> list[str | None]:
    """Return the reason to drop each text, or None."""
    return ["ads" if PHRASES.search(text) else None for text in batch["text"].to_pylist()]
