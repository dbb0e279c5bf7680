"""Fetches tokenizers of models on the Hugging Face hub into the cache of huggingface_hub."""

from pathlib import Path

from shards.errors import UserError
from shards.storage.hub import HubName, failure_reason, hub_endpoint, silence_hub

VOCABULARY, CONFIG = "vocab.txt", "tokenizer_config.json"
"""The names of BERT's files, as written by save_pretrained()."""
TOKENIZER_FILES = ("tokenizer.json", VOCABULARY)
"""The files of a folder or repository to look for; the first one that exists is used."""

SHORT_NAMES = {
    "gpt2": "tiktoken:gpt2",
    **{
        f"bert-base-{kind}": f"hf:google-bert/bert-base-{kind}"
        for kind in ("chinese", "uncased", "cased", "multilingual-cased")
    },
}
"""Common short names of tokenizers, and their specs."""


def is_model_name(name: str) -> bool:
    """Return whether a tokenizer's name is OWNER/NAME[@REVISION] and not an existing path."""
    is_file = name.endswith((".json", ".txt"))
    return not is_file and HubName.parse(name) is not None and not Path(name).exists()


def model_file(name: str) -> Path:
    """Return the path of the tokenizer's file of a model on the hub.

    Files in the cache are used without a query, so that all processes of a run use the same file,
    and a machine without a connection can use it; other files are downloaded.

    Args:
        name: OWNER/NAME[@REVISION]; the revision is a branch, a tag or a commit.

    Raises:
        UserError: The model or revision does not exist or is gated, it has no tokenizer file, or
            the hub cannot be reached.
    """
    model = HubName.parse(name)
    assert model is not None
    for file in TOKENIZER_FILES:
        if path := _fetched(model, file):
            if file == VOCABULARY:
                _fetched(model, CONFIG)
            return path
    raise _refused(model, f"it has no {' or '.join(TOKENIZER_FILES)}")


def sibling_file(name: str, file: str) -> Path | None:
    """Return the path of a file of a model on the hub; None if the model does not have the file.

    Args:
        name: OWNER/NAME[@REVISION].
        file: The name of the file.

    Raises:
        UserError: The hub cannot be reached.
    """
    model = HubName.parse(name)
    assert model is not None
    return _fetched(model, file)


def _fetched(model: HubName, file: str) -> Path | None:
    """Return the path of a model's file in the cache; None if the model does not have the file."""
    # The import takes a second, and most runs do not need it.
    from huggingface_hub import errors, hf_hub_download, try_to_load_from_cache  # noqa: PLC0415

    repository, revision = model.repository, model.revision
    cached = try_to_load_from_cache(repository, file, revision=revision)
    if cached is not None:
        return Path(cached) if isinstance(cached, str) else None  # else known not to exist
    silence_hub()
    try:
        return Path(hf_hub_download(repository, file, revision=revision))
    except Exception as error:  # errors of the hub and of the HTTP library have no common class
        is_away = isinstance(error, errors.LocalEntryNotFoundError)
        if isinstance(error, errors.EntryNotFoundError) and not is_away:
            return None
        raise _refused(model, failure_reason(error, model, kind="model")) from error


def _refused(model: HubName, why: str) -> UserError:
    return UserError(
        f"{model} is not a local file or folder, and cannot be loaded from the hub "
        f"({hub_endpoint()}): {why}. Write hf:OWNER/NAME[@REVISION], or hf:FOLDER with a copy of "
        f"its {TOKENIZER_FILES[0]}."
    )
