"""The token that ends a document, where a tokenizer's own file does not decide it.

--eos TOKEN                                            one of the tokenizer's tokens
tokenizer_config.json, then special_tokens_map.json    next to the file: `eos_token`
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from pipelines.tokenizers.hub import CONFIG
from pipelines.tokenizers.model import reason
from shards.commands.spelling import nearest
from shards.errors import UserError

FILES = (CONFIG, "special_tokens_map.json")
"""Files of save_pretrained() next to a tokenizer, the first that names an end."""


def _nothing(_: str) -> None:
    """Find no file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOfText:
    """Who says what ends a document."""

    token: str = ""
    """The token that --eos names; "": there is no flag."""
    kept: int | None = None
    """The id that a dataset keeps with its tokenizer."""
    beside: Callable[[str], Path | None] = _nothing
    """Returns the file with a name that is next to the tokenizer's, if there is one."""

    def asked(self, vocabulary: Mapping[str, int], *, name: object) -> int | None:
        """Return the id that a flag or a dataset says; None if none does.

        Args:
            vocabulary: The ids of all tokens.
            name: Of the tokenizer's file, for messages.

        Raises:
            UserError: The tokenizer has no such token.
        """
        if not self.token:
            return self.kept
        if self.token not in vocabulary:
            near = nearest(self.token, [token for token in vocabulary if token[0] in "<["])
            meant = f" Did you mean {' or '.join(near)}?" if near else ""
            raise UserError(
                f"--eos {self.token}: {name} has no such token. Name one of its "
                f"{len(vocabulary):,} tokens, which ends each document.{meant}"
            )
        return vocabulary[self.token]

    def named(self, vocabulary: Mapping[str, int]) -> int | None:
        """Return the id of the token that a file next to the tokenizer names, if it has it.

        Raises:
            UserError: Such a file cannot be read.
        """
        ids = (vocabulary.get(name) for name in map(self._name_in, FILES) if name)
        return next((i for i in ids if i is not None), None)

    def _name_in(self, file: str) -> str:
        path = self.beside(file)
        if path is None:
            return ""
        try:
            token = {**orjson.loads(path.read_bytes())}.get("eos_token")
            name = token.get("content", token) if isinstance(token, dict) else token
            if not isinstance(name, str | None):
                raise ValueError(f"eos_token is {name!r}, not a text")
        except (ValueError, TypeError, LookupError) as error:
            raise UserError(
                f"{path} is next to the tokenizer and would name the token that ends a document, "
                f"but cannot be read ({reason(error)}): expected the JSON that save_pretrained() "
                "writes. Fetch it again, or name the token with --eos TOKEN."
            ) from error
        return name or ""
