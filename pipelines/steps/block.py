"""Documents from blocked addresses go."""

from collections.abc import Sequence

import pyarrow as pa

from pipelines.filters.blocklist import load_blocklist
from pipelines.segments.rows import Verdict
from pipelines.steps.step import Step, reasons_where
from shards.errors import UserError

BLOCKED = "url-blocklist"


class Block(Step):
    """Drops documents whose column url matches an entry of a list."""

    name = "block"
    reasons = (BLOCKED,)

    def __init__(self, paths: Sequence[str]) -> None:
        """Load the list.

        Args:
            paths: Files of domains and URL prefixes, as --url-blocklist takes them.

        Raises:
            UserError: As load_blocklist.
        """
        self._blocklist = load_blocklist(paths)
        self.facts = {"url_blocklist": self._blocklist.fingerprint}

    def __call__(self, batch: pa.RecordBatch) -> Verdict:
        """Drop documents from blocked addresses."""
        if "url" not in batch.schema.names:
            raise UserError("--url-blocklist needs a corpus whose records have a url")
        return Verdict(
            batch, reasons_where(self._blocklist.blocked(batch["url"].to_pylist()), BLOCKED)
        )
