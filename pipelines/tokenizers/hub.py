"""The tokenizer of a model on the Hugging Face hub: its files in the cache of the hub's library."""

from pathlib import Path

from shards.errors import UserError
from shards.storage.hub import HubName, failure_reason, hub_endpoint, silence_hub

VOCABULARY, CONFIG = "vocab.txt", "tokenizer_config.json"
"""The names that save_pretrained() gives BERT's files."""
TOKENIZER_FILES = ("tokenizer.json", VOCABULARY)
"""Files of a folder or repository; the first that exists is used."""

SHORT_NAMES = {
    "gpt2": "tiktoken:gpt2",
    **{
        f"bert-base-{kind}": f"hf:google-bert/bert-base-{kind}"
        for kind in ("chinese", "uncased", "cased", "multilingual-cased")
    },
}
"""Names that people type alone, and what each is written as."""


def is_model_name(name: str) -> bool:
    """Return whether the name of a tokenizer is OWNER/NAME[@REVISION], and no path that is here."""
    is_file = name.endswith((".json", ".txt"))
    return not is_file and HubName.parse(name) is not None and not Path(name).exists()


def model_file(name: str) -> Path:
    """Return the tokenizer's file of a model of the hub.

    Files in the cache are used as they are, so that every process of a run has the same file and a
    machine without a connection has it too; otherwise the hub is queried.

    Args:
        name: OWNER/NAME[@REVISION]; the revision is a branch, a tag or a commit.

    Raises:
        UserError: there is no such model or revision, it is gated, it has no tokenizer that can be
            read here, or the hub cannot be reached.
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
    """Return another file of a model of the hub; None if the model has none of this name.

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
    """Return a file of a model in the cache; None if the model has none of this name."""
    # It takes a second to import, and most runs need none of it.
    from huggingface_hub import errors, hf_hub_download, try_to_load_from_cache  # noqa: PLC0415

    repository, revision = model.repository, model.revision
    cached = try_to_load_from_cache(repository, file, revision=revision)
    if cached is not None:
        return Path(cached) if isinstance(cached, str) else None  # else known not to exist
    silence_hub()
    try:
        return Path(hf_hub_download(repository, file, revision=revision))
    except Exception as error:  # the hub's and the HTTP library's have no class in common
        is_away = isinstance(error, errors.LocalEntryNotFoundError)
        if isinstance(error, errors.EntryNotFoundError) and not is_away:
            return None
        raise _refused(model, failure_reason(error, model, kind="model")) from error


def _refused(model: HubName, why: str) -> UserError:
    return UserError(
        f"{model} is not a file or folder here, and the hub ({hub_endpoint()}) lacks it: {why}. "
        f"Write hf:OWNER/NAME[@REVISION], or hf:FOLDER with a copy of its {TOKENIZER_FILES[0]}."
    )
