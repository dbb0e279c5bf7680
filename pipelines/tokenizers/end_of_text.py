"""Finds the token that ends documents, if the tokenizer's own file does not define it.

--eos TOKEN                                            a token of the tokenizer
tokenizer_config.json, then special_tokens_map.json    their `eos_token`, next to the file
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from pipelines.tokenizers.hub import CONFIG
from pipelines.tokenizers.model import reason
from shards.commands.spelling import nearest
from shards.errors import UserError

EOS_FILES = (CONFIG, "special_tokens_map.json")
"""The files of save_pretrained() that may name the token; the first one that does counts."""


def _no_file(_: str) -> None:
    """Return None, which means that there is no such file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOfText:
    """The places that may name the token that ends a document."""

    token: str = ""
    """The token that --eos names; "" if the flag is not given."""
    restored_id: int | None = None
    """The id that a dataset stores with its tokenizer."""
    sibling: Callable[[str], Path | None] = _no_file
    """Returns the file with the given name next to the tokenizer's file; None if there is none."""

    def requested_id(self, vocabulary: Mapping[str, int], *, name: object) -> int | None:
        """Return the id that --eos or the dataset names; None if neither does.

        Args:
            vocabulary: The ids of all tokens.
            name: The name of the tokenizer's file, for messages.

        Raises:
            UserError: The tokenizer has no such token.
        """
        if not self.token:
            return self.restored_id
        if self.token not in vocabulary:
            near = nearest(self.token, [token for token in vocabulary if token[0] in "<["])
            meant = f" Did you mean {' or '.join(near)}?" if near else ""
            raise UserError(
                f"--eos {self.token}: {name} has no such token. Give one of its "
                f"{len(vocabulary):,} tokens, which then ends each document.{meant}"
            )
        return vocabulary[self.token]

    def configured_id(self, vocabulary: Mapping[str, int]) -> int | None:
        """Return the id of the token that a file next to the tokenizer names; None if none does.

        Raises:
            UserError: Such a file cannot be read.
        """
        ids = (vocabulary.get(name) for name in map(self._name_in, EOS_FILES) if name)
        return next((i for i in ids if i is not None), None)

    def _name_in(self, file: str) -> str:
        path = self.sibling(file)
        if path is None:
            return ""
        try:
            token = {**orjson.loads(path.read_bytes())}.get("eos_token")
            name = token.get("content", token) if isinstance(token, dict) else token
            if not isinstance(name, str | None):
                raise ValueError(f"eos_token is {name!r}, not a text")
        except (ValueError, TypeError, LookupError) as error:
            raise UserError(
                f"{path}, which names the token that ends a document, cannot be read "
                f"({reason(error)}): expected the JSON that save_pretrained() writes. Fetch the "
                "file again, or name the token with --eos TOKEN."
            ) from error
        return name or ""
