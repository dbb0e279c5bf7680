"""Loads tokenizers, which map texts to ids; GLM's command tokens follow the model's own pieces.

    sentencepiece:PATH   a .model file
    tiktoken:NAME        an encoding that tiktoken knows: gpt2, cl100k_base, ...
    tiktoken:PATH        its file NAME.tiktoken, or GPT-2's merges.txt with vocab.json next to it
    hf:PATH              a tokenizer.json, BERT's vocab.txt (any .txt), or a folder with either
    hf:OWNER/NAME        such a file of a model on the Hugging Face hub; @REVISION may follow

The strings of special tokens are encoded as ordinary text, so that no document can insert an end of
text or a mask into the corpus.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.tokenizers.agreement import CHECK_TEXTS
from pipelines.tokenizers.command_tokens import NAMES
from pipelines.tokenizers.end_of_text import EndOfText
from pipelines.tokenizers.hub import (
    SHORT_NAMES,
    TOKENIZER_FILES,
    is_model_name,
    model_file,
    sibling_file,
)
from pipelines.tokenizers.model import TokenModel, raise_unless_failure, reason
from shards.commands.spelling import nearest
from shards.commands.table import called
from shards.errors import DamageError, UserError
from shards.format import token_dtype
from shards.manifest import TokenizerEntry
from shards.vocabulary import vocabulary_table

KINDS = {
    "sentencepiece": "sentencepiece:PATH",
    "tiktoken": "tiktoken:NAME or tiktoken:PATH",
    "hf": "hf:PATH or hf:OWNER/NAME",
}
"""The kinds of tokenizers, and the syntax of their specs."""

_LINES = ".txt"
_TRAIN = f"No tokenizer yet? {called('train-tokenizer')} --help shows how to train one."


class Tokenizer:
    """A model and its command tokens, which `load_tokenizer` makes in the process that uses it."""

    def __init__(self, model: TokenModel) -> None:
        self._model = model
        self.special = dict(model.commands.ids)
        """The ids of eos, pad, sep, cls, mask, unk, sop, eop, smask, gmask, dblock."""
        self.unknown = model.unknown
        """The id for text that the model cannot encode; None if it can encode everything."""
        if model.unknown is not None:
            self.special["unk"] = model.unknown
        self.unused_end = model.unused_end
        """The model's own end-of-text piece, if another token ends documents; else ""."""
        self.pieces = len(model.pieces)
        """The number of the model's own ids."""
        self.vocabulary_size = model.commands.padded
        """The number of ids, including command tokens and padding."""
        self.dtype = token_dtype(self.vocabulary_size)
        """The type of a token in shards."""
        self.library = model.library
        """The library that encodes and its version, such as "sentencepiece 0.2.1"."""
        self.fingerprint = _fingerprint(model)
        """SHA-256 of the model and its command ids, in hexadecimal."""

    def encode_batch(
        self, texts: Sequence[str]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64], list[tuple[int, str]]]:
        """Return the tokens of all texts, the number of tokens of each text, and failures.

        No eos is added. A text on which the library fails gets no tokens, and its index and the
        reason are in the third value; the other texts are encoded nevertheless.
        """
        failures: list[tuple[int, str]] = []
        try:
            tokens, lengths = self._encode(texts)
        except BaseException as error:  # noqa: BLE001  a panic in Rust is no Exception
            if not isinstance(error, MemoryError):  # one text at a time needs less memory
                raise_unless_failure(error)
            tokens, lengths, failures = self._encode_singly(texts)
        return tokens.astype(self.dtype, copy=False), lengths, failures

    def _encode(self, texts: Sequence[str]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        tokens, lengths = self._model.encode(texts)
        if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < self.pieces:
            raise ValueError(
                f"the library gives an id that is not one of the model's {self.pieces}"
            )
        return tokens, lengths

    def _encode_singly(
        self, texts: Sequence[str]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64], list[tuple[int, str]]]:
        parts: list[npt.NDArray[Any]] = []
        failures = []
        for index, text in enumerate(texts):
            try:
                parts.append(self._encode([text])[0])
            except BaseException as error:  # noqa: BLE001  as above
                raise_unless_failure(error)
                parts.append(np.empty(0, self.dtype))
                failures.append((index, f"{type(error).__name__}: {error}"))
        lengths = np.array([len(part) for part in parts], np.int64)
        return np.concatenate(parts), lengths, failures

    def transformers_json(self) -> str | None:
        """Return a `tokenizer.json` that gives the same ids; None if that is impossible."""
        write = self._model.transformers_json
        return None if write is None else write()

    def vocabulary(self) -> pa.Table:
        """Return the table of shards.vocabulary: bytes, special and sentence_end of each id."""
        pieces = [*self._model.pieces]
        pieces += [b""] * (self._model.commands.total - len(pieces))
        for role, i in self._model.commands.ids.items():
            # "pad" shares its id with "eos" and must not rename it.
            pieces[i] = pieces[i] or NAMES[role].encode()
        special = self._model.special_ids | {
            *self._model.commands.ids.values(),
            self.special["unk"],
        }
        special |= {i for i, piece in enumerate(pieces) if not piece}
        return vocabulary_table(
            pieces, special=special, size=self.vocabulary_size, tokenizer=self._model.content
        )


def load_tokenizer(spec: str, *, eos: str = "", fast: bool = True) -> Tokenizer:
    """Return the tokenizer of a spec.

    Args:
        spec: "sentencepiece:PATH", "tiktoken:NAME", "tiktoken:PATH", "hf:PATH" or "hf:OWNER/NAME".
        eos: The token that ends documents; "" for the one that the tokenizer names.
        fast: Whether to encode with a faster implementation if there is one with equal ids.

    Raises:
        UserError: The tokenizer cannot be loaded, texts can produce one of its special tokens, or
            it gives ids that it does not have.
    """
    check_spec(spec)
    kind, _, name = spec.partition(":")
    try:
        with _readable(spec, name):
            model = _load(kind, name, eos=eos, fast=fast)
    except UserError as error:
        other = _ENDINGS.get(Path(name).suffix, kind)
        if other == kind:
            raise
        raise UserError(f"{str(error).rstrip('.')}. Did you mean {other}:{name}?") from error
    return _checked(spec, model)


def check_spec(spec: str) -> None:
    """Check that a spec names a kind of tokenizer, and a file that exists.

    Raises:
        UserError: The kind is unknown or the file does not exist.
    """
    kind, _, name = spec.partition(":")
    if kind not in KINDS or not name:
        raise UserError(f'--tokenizer "{spec}": write {_suggestion(spec)}. {_TRAIN}')
    with _readable(spec, name):
        if kind != "tiktoken" and not Path(_file_of(kind, name)).is_file():
            meant = f" Did you mean {SHORT_NAMES[name]}?" if name in SHORT_NAMES else ""
            raise UserError(f"{spec}: the file {name} does not exist.{meant} {_TRAIN}")


@contextmanager
def _readable(spec: str, name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{spec}: {name} cannot be read ({error.strerror}).") from error


def restore_tokenizer(entry: TokenizerEntry, content: bytes, *, where: str) -> Tokenizer:
    """Return the tokenizer that a dataset stores in its vocabulary.

    Args:
        entry: The tokenizer's entry in the dataset's manifest.
        content: The tokenizer's content in the vocabulary.
        where: The name of the vocabulary, for messages.

    Raises:
        DamageError: The content is not that of the tokenizer in the manifest.
        UserError: The tokenizer cannot be loaded here.
    """
    name = f"{entry.name} in {where}"
    if entry.spec == "tiktoken":
        from pipelines.tokenizers.bpe import restore_tiktoken  # noqa: PLC0415  as in _load

        end_of_text = entry.special["eos"]
        model = restore_tiktoken(content, name=name, end_of_text=end_of_text, size=entry.pieces)
    else:
        # Only a few texts are encoded, so the library finishes before numba would be loaded.
        model = _of_content(
            entry.spec,
            content,
            name=name,
            end=EndOfText(restored_id=_own_end(entry)),
            fast=entry.spec != "sentencepiece",
        )
    tokenizer = _checked(name, model)
    if tokenizer.fingerprint != entry.sha256:
        raise DamageError(
            f"{name} is not the tokenizer that made the dataset: its sha256 is "
            f"{tokenizer.fingerprint[:12]}…, the manifest names {entry.sha256[:12]}…. Restore the "
            "file from a copy."
        )
    return tokenizer


def _own_end(entry: TokenizerEntry) -> int | None:
    """Return the id of the tokenizer's own token that ends documents; None if it was added."""
    eos = entry.special["eos"]
    return eos if eos < entry.pieces else None


def _checked(name: str, model: TokenModel) -> Tokenizer:
    _refuse_injection(name, model)
    _check_ids(name, model)
    return Tokenizer(model)


def _load(kind: str, name: str, *, eos: str, fast: bool) -> TokenModel:
    if kind == "tiktoken":
        from pipelines.tokenizers.bpe import END_OF_TEXT, load_tiktoken  # noqa: PLC0415  as below

        if eos not in ("", END_OF_TEXT):
            raise UserError(
                f"--eos {eos}: with {kind}:{name} documents end with {END_OF_TEXT}. Leave out "
                "--eos, or give the model as hf:tokenizer.json."
            )
        return load_tiktoken(name, fast=fast)
    path = Path(_file_of(kind, name))
    content = path.read_bytes()
    if kind == "hf" and path.suffix == _LINES:
        from pipelines.tokenizers.wordpiece import wordpiece_json  # noqa: PLC0415  see _of_content

        content = wordpiece_json(content, path=path)
    end = EndOfText(token=eos, sibling=partial(_sibling, kind, name, path))
    return _of_content(kind, content, name=str(path), end=end, fast=fast)


def _sibling(kind: str, name: str, path: Path, file: str) -> Path | None:
    """Return the file with a name next to a tokenizer's file, or in the same model on the hub.

    Args:
        kind: The kind of the tokenizer.
        name: The tokenizer's name in its spec.
        path: The path of the tokenizer's file.
        file: The name of the file to find.
    """
    if kind == "hf" and is_model_name(name):
        return sibling_file(name, file)
    sibling = path.with_name(file)
    return sibling if sibling.is_file() else None


def _of_content(kind: str, content: bytes, *, name: str, end: EndOfText, fast: bool) -> TokenModel:
    # Each library is loaded only if it is used.
    if kind == "sentencepiece":
        from pipelines.tokenizers.sentencepiece import sentencepiece_model  # noqa: PLC0415

        return sentencepiece_model(content, name=name, end=end, fast=fast)
    from pipelines.tokenizers.huggingface import huggingface_model  # noqa: PLC0415

    return huggingface_model(content, path=Path(name), end=end, fast=fast)


def _file_of(kind: str, name: str) -> str:
    """Return the tokenizer's file in a folder of save_pretrained(), or in a model on the hub.

    For any other name return the name itself.

    Raises:
        UserError: The folder or the model has no tokenizer file.
    """
    if kind == "hf" and is_model_name(name):
        return str(model_file(name))
    folder = Path(name)
    if not folder.is_dir():
        return name
    if kind != "hf":
        models = sorted(folder.glob("*.model"))
        meant = f" Did you mean {kind}:{models[0]}?" if models else ""
        raise UserError(f"{kind}:{name} is a folder: give the tokenizer's file in it.{meant}")
    for file in TOKENIZER_FILES:
        if (folder / file).is_file():
            return str(folder / file)
    raise UserError(
        f"hf:{name}: there is no file {' or '.join(TOKENIZER_FILES)} in the folder. {_TRAIN}"
    )


_ENDINGS = {".model": "sentencepiece", ".json": "hf", ".tiktoken": "tiktoken"}
"""The kind of tokenizer for each file name extension."""


def _suggestion(spec: str) -> str:
    if spec in SHORT_NAMES:
        return SHORT_NAMES[spec]
    if is_model_name(spec) and Path(spec).suffix not in _ENDINGS:
        return f"hf:{spec}"
    kinds = {**_ENDINGS, _LINES: "hf"}
    kind, colon, name = spec.partition(":")
    if near := nearest(kind, KINDS, most=1) if colon and name else ():
        return f"{near[0]}:{name}"
    kind = "tiktoken" if Path(spec).name == "merges.txt" else kinds.get(Path(spec).suffix, "")
    return f"{kind}:{spec}" if kind and ":" not in spec else ", ".join(KINDS.values())


def _refuse_injection(spec: str, model: TokenModel) -> None:
    for i in sorted(model.special_ids - {model.unknown}):
        name = model.pieces[i].decode()
        if name and i in model.encode([name, f"a{name}a"])[0]:
            raise UserError(
                f'{spec} turns the text "{name}" into the special token {i}, so that documents '
                "could write control tokens: remove it from the model's ordinary vocabulary, mark "
                "it as special, or end documents with another token, --eos TOKEN."
            )


def _check_ids(spec: str, model: TokenModel) -> None:
    """Refuse a model that turns plain texts into ids that have no piece."""
    try:
        tokens, _ = model.encode(CHECK_TEXTS)
    except BaseException as error:
        raise_unless_failure(error)
        raise UserError(
            f"{spec} was loaded, but cannot encode plain text ({reason(error)}): the file is "
            "damaged, or this version of the library does not support all of it."
        ) from error
    ids = set(tokens.tolist())
    wrong = ids - set(range(len(model.pieces))) or ids & (model.special_ids - {model.unknown})
    if wrong:
        raise UserError(
            f"{spec} turns plain text into the id {min(wrong)}, which is a special token or not "
            f"one of its {len(model.pieces)} pieces: the file is damaged."
        )


def _fingerprint(model: TokenModel) -> str:
    layout = json.dumps([len(model.pieces), dict(model.commands.ids)], sort_keys=True)
    return hashlib.sha256(model.content + layout.encode()).hexdigest()
