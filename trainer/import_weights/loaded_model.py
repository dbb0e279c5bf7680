"""Opens a trained model, and finds its shape, its objective and its tokenizer.

The model may be in a run's folder, in one of its checkpoints (any ZeRO stage, any number of ranks),
or in a published checkpoint. If a published checkpoint has no config.json, `--model` gives the
shape.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from shards.errors import UserError
from shards.manifest import distinct_labels
from shards.reader import Dataset
from shards.records import from_json
from shards.sampling.mixture import parse_data
from shards.sampling.plan import CAUSAL
from shards.sampling.plan import GLM as BLANKS
from trainer.checkpoint import Checkpoint, usable_checkpoint
from trainer.distributed import DTYPES
from trainer.import_weights.config_json import (
    CONFIG,
    TrainingInfo,
    described_folder,
    shape_at,
    shape_named,
    training_in,
)
from trainer.import_weights.load import load_weights
from trainer.json_file import read_object
from trainer.load_options import LoadOptions
from trainer.model.model import GLM
from trainer.model.sizes import SIZES, ModelConfig
from trainer.tokenizer import PromptFormat, TextTokenizer
from trainer.torch_file import one_line

_TOKENIZER_FILES = (
    ("tokenizer.json", "hf"),
    ("cog-pretrain.model", "sentencepiece"),
    ("merges.txt", "tiktoken"),
    ("vocab.txt", "hf"),
)
"""Files of tokenizers next to the weights of published models, and the kind of each; the first file
that exists is used."""


@dataclass(frozen=True, kw_only=True)
class ModelSource(TrainingInfo):
    """The description of a model in a checkpoint, before its weights are read."""

    path: Path
    """The path of the weights for `load_weights`."""
    shape: ModelConfig
    objective: str
    data: tuple[str, ...] = ()
    """Folders or addresses of the data that the model was trained on, if known."""
    step: int | None = None
    vocabulary: int | None = None
    """The number of tokens; further embedding rows are padding. None if every row has a token."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """The state in the checkpoint; empty if a different program wrote the checkpoint."""

    @property
    def prompt_format(self) -> PromptFormat:
        """The properties of the model that decide how prompts are encoded."""
        return PromptFormat(
            causal=self.objective == CAUSAL,
            positions=self.shape.position_rows,
            task_mask=self.task_mask,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadedModel:
    """A trained model that is ready for use."""

    model: GLM
    """The model on its device, in evaluation mode, without gradients."""
    tokenizer: TextTokenizer
    source: ModelSource


def open_model(path: str | Path, options: LoadOptions | None = None) -> LoadedModel:
    """Return the model in a run's folder, one of its checkpoints, or a published checkpoint.

    Args:
        path: the folder or file.
        options: the shape and tokenizer, if the files do not give them, and the dtype and device.
            Default: the values in the files, and an accelerator if there is one.

    Raises:
        UserError: there is no model, its shape or tokenizer is not known, or they do not fit
            together.
        DamageError: a file of the model is damaged.
    """
    options = options or LoadOptions()
    source = resolve_model(Path(path), options)
    tokenizer = find_tokenizer(source, options)
    return LoadedModel(model=load_model(source, options), tokenizer=tokenizer, source=source)


def load_model(source: ModelSource, options: LoadOptions) -> GLM:
    """Return a model with its weights, on its device, in evaluation mode, without gradients.

    Raises:
        UserError: there is no such device, or the weights do not fit the shape.
        DamageError: a file of the model is damaged.
    """
    device = _device(options)
    with torch.device("meta"):
        # Rows have many widths, and FlexAttention would be compiled for each.
        model = GLM(source.shape, attention="sdpa")
    model = model.to(_dtype(options, device)).to_empty(device=device)
    load_weights(source.path, model)
    model.word_embeddings.vocabulary = source.vocabulary
    return model.eval().requires_grad_(False)


def resolve_model(path: Path, options: LoadOptions) -> ModelSource:
    """Return the description of a model.

    Raises:
        UserError: there is no model, or its shape is not known.
    """
    checkpoint = usable_checkpoint(path)
    if checkpoint is None:
        return _published(path, options)
    return source_of_run(
        checkpoint.state["identity"],
        path=checkpoint.folder,
        data=_data_of(checkpoint),
        step=checkpoint.step,
        state=checkpoint.state,
    )


def source_of_run(
    identity: Mapping[str, Any],
    *,
    path: Path,
    data: tuple[str, ...],
    step: int,
    state: Mapping[str, Any] = MappingProxyType({}),
) -> ModelSource:
    """Return the description of a run's model from the identity that its checkpoints record."""
    try:
        shape = from_json(ModelConfig, identity["model"], where="model")
    except (KeyError, ValueError) as error:
        raise UserError(
            f"{path} does not contain the shape of its model ({error}): restore its whole-*.json."
        ) from error
    return ModelSource(
        path=path,
        shape=replace(shape, hidden_dropout=0.0, attention_dropout=0.0),
        objective=str(identity["objective"]),
        tokenizer=dict(identity["tokenizer"]),
        data=data,
        step=step,
        task_mask=bool((identity.get("blanks") or {}).get("task_mask", True)),
        length=state.get("run", {}).get("length"),
        isolate_documents=bool(identity.get("isolate_documents", False)),
        state=state,
    )


def _published(path: Path, options: LoadOptions) -> ModelSource:
    """Return the description of a published model."""
    shape, folder = _shape_given(path, options), described_folder(path)
    content = read_object(folder / CONFIG) if folder else {}
    objective, vocabulary = content.get("objective"), content.get("vocab_size")
    if objective not in (CAUSAL, BLANKS):
        objective = BLANKS if shape.block_positions else CAUSAL
    return ModelSource(
        **vars(training_in(folder) if folder else TrainingInfo()),
        path=path,
        shape=shape,
        objective=objective,
        vocabulary=vocabulary if isinstance(vocabulary, int) else None,
    )


def find_tokenizer(source: ModelSource, options: LoadOptions) -> TextTokenizer:
    """Return the tokenizer of a model's data.

    Raises:
        UserError: the tokenizer is not known, or the model was trained with a different one.
    """
    given = options.tokenizer
    beside = _tokenizer_of_folder(source) if given is None or source.tokenizer else None
    tokenizer = TextTokenizer(given) if given else beside or _kept_tokenizer(source)
    expected = source.tokenizer.get("sha256", tokenizer.sha256)
    # The tokenizer that an export wrote next to the weights is the same tokenizer in a different
    # form.
    if tokenizer.sha256 not in (expected, beside and beside.sha256):
        kind, _, name = tokenizer.spec.partition(":")
        given, own = Path(name).name, source.tokenizer["name"]
        this, that = distinct_labels((given, tokenizer.sha256), (own, expected))
        raise UserError(
            f"the tokenizer {kind}:{this}, with {tokenizer.vocabulary_size:,} ids, is not the one "
            f"that {source.path} was trained with, {that}: its ids mean other text. Give that one, "
            "--tokenizer SPEC."
        )
    if tokenizer.vocabulary_size > source.shape.vocab_size:
        raise UserError(
            f"the tokenizer {tokenizer.spec} has {tokenizer.vocabulary_size:,} ids, and the model "
            f"in {source.path} has {source.shape.vocab_size:,}: give the model's own tokenizer."
        )
    return tokenizer


def _tokenizer_of_folder(source: ModelSource) -> TextTokenizer | None:
    """Return the tokenizer whose file is next to the weights; None if there is none."""
    folder = described_folder(source.path)
    if folder is None:
        return None
    for name, kind in _TOKENIZER_FILES:
        if (folder / name).is_file():
            return TextTokenizer(f"{kind}:{folder / name}")
    return None


def _kept_tokenizer(source: ModelSource) -> TextTokenizer:
    """Return the tokenizer in the data of a model.

    Raises:
        UserError: the data are not here, or do not contain the tokenizer.
    """
    problem = "its data are not known"
    for directory in source.data:
        try:
            dataset = Dataset.open(directory)
            if dataset.manifest.tokenizer.sha256 == source.tokenizer.get("sha256"):
                tokenizer = TextTokenizer.of_data(dataset)
                if tokenizer is not None:
                    return tokenizer
            problem = f"{directory} does not keep it"
        except UserError as error:
            problem = str(error).rstrip(".")
    name = source.tokenizer.get("name")
    raise UserError(
        f"the tokenizer of {source.path}{f', {name},' if name else ''} is not found ({problem}): "
        "give it with --tokenizer sentencepiece:FILE, tiktoken:NAME or hf:FILE."
    )


def _shape_given(path: Path, options: LoadOptions) -> ModelConfig:
    """Return the shape of a published model from a flag or its config.json.

    Raises:
        UserError: there is no such file or folder, or its shape is not known.
    """
    if options.model is not None:
        return shape_named(options.model)
    if not path.exists():
        raise UserError(f"there is no file or folder {path}: give a run's folder or a checkpoint.")
    if (shape := shape_at(path)) is not None:
        return shape
    raise UserError(
        f"{path} contains no checkpoint of trainer.train. If it is a published one, give its "
        f"model: --model NAME, one of {', '.join(SIZES)}, or FILE.json."
    )


def _data_of(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Return the datasets that a run read last, each dataset once."""
    mixes = checkpoint.state.get("run", {}).get("mixes", [])
    texts = [text for mix in mixes[-1:] for text in mix.get("data", [])]
    # Earlier versions recorded the paths as the user wrote them.
    return tuple(dict.fromkeys(str(parse_data(text).absolute().directory) for text in texts))


def _device(options: LoadOptions) -> torch.device:
    if options.device is not None:
        try:
            one = torch.ones(1, device=options.device)
            one.item()  # fails on devices that store no values, such as meta
        # The module of the device is missing, or torch was built without it.
        except (RuntimeError, AssertionError, ImportError) as error:
            raise UserError(
                f"--device {options.device}: torch cannot compute on such a device here "
                f"({one_line(error)}). Give cpu, cuda or cuda:N, or leave the flag out."
            ) from error
        return one.device
    return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")


def _dtype(options: LoadOptions, device: torch.device) -> torch.dtype:
    if options.dtype != "auto":
        return DTYPES[options.dtype]
    is_fast = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.bfloat16 if is_fast else torch.float32
