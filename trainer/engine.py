"""One step of training: a global batch in, weights changed, by DeepSpeed's engine.

The loss of a step is the sum over the tokens of the global batch divided by their number, however
the batch is split into ranks and micro-batches: the number is known before the first backward pass.
DeepSpeed averages gradients over the ranks, so each rank's sum is first multiplied by the number of
ranks.

Dropout is PyTorch's own. Its generator is seeded anew for each micro-batch, from (seed, step, rank,
number of the micro-batch), so a run that resumes on as many ranks has the same masks, and no state
of a generator has to be saved.
"""

import io
import logging
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shards.commands.shown import visible_line
from shards.commands.table import called
from shards.errors import DamageError, UserError
from shards.sampling.permutation import derive, text_key
from trainer.checkpoint import IF_REMOVED
from trainer.config import RunConfig
from trainer.deepspeed import FP32, precision_of, stage_of
from trainer.distributed import DTYPES, Ranks
from trainer.loader import Tensors
from trainer.log import TRAIN
from trainer.metrics import LossTally, StepResult
from trainer.model.loss import LossSums
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.torch_file import deepspeed_types, explain_damage, one_line, weights_only

WEIGHTS_SPLIT = 3
"""The ZeRO stage at which no rank has the whole model."""
_MODEL_INPUTS = ("tokens", "targets", "loss_mask", "position_ids", "sep", "pieces")
_MONITORS = {"wandb": "wandb", "comet": "comet_ml", "tensorboard": "tensorboard"}
"""Sections of DeepSpeed's JSON, and the package that each needs."""
_ROWS = (*_MODEL_INPUTS, "source", "objective")
_AMPERE = (8, 0)
"""The first CUDA capability that Triton still supports and that computes in bf16."""
_MAX_STAGE = 2
"""Of ZeRO, to be compiled: at stage 3 weights are gathered within what would be compiled."""
_log = logging.getLogger(__name__)


MicroBatchLoss = Callable[[], Tensor]
"""Computes the share of a micro-batch in the loss of a step, a scalar with gradients."""


def check_settings(deepspeed: Mapping[str, Any]) -> None:
    """Check that DeepSpeed takes these settings together; each alone is checked before.

    Raises:
        UserError: it does not; the message says why.
    """
    _check_monitors(deepspeed)
    # Reads DS_ACCELERATOR when it is imported.
    from deepspeed.runtime.config import DeepSpeedConfig  # noqa: PLC0415

    try:
        DeepSpeedConfig(dict(deepspeed))
    except Exception as error:  # asserts, pydantic's errors, and plain ones
        raise UserError(
            f"DeepSpeed does not take the settings of its JSON: {one_line(error)}. Correct them "
            "there."
        ) from error


def _check_monitors(deepspeed: Mapping[str, Any]) -> None:
    """Check that the packages of the enabled monitors are there."""
    for section, package in _MONITORS.items():
        if deepspeed.get(section, {}).get("enabled") and find_spec(package) is None:
            raise UserError(
                f"the DeepSpeed JSON enables {section}, and {package} is not installed: pip "
                f'install {package}, or set "enabled": false there.'
            )


def make_model(
    shape: ModelConfig,
    *,
    seed: int,
    checkpoint_activations: bool,
    deepspeed: Mapping[str, Any],
    ranks: Ranks,
    make: Callable[..., GLM] = GLM,
) -> GLM:
    """Return a model with initial values, where and in the type that it is trained in.

    No rank holds all of it in fp32 on the way there: its modules are made one after another. At
    ZeRO stage 3 each rank keeps only its part. Below, the first rank alone has the values, and
    DeepSpeed sends them to the others when it makes its engine. `make` is the model's class.
    """
    from deepspeed.runtime.zero import Init  # noqa: PLC0415 - reads DS_ACCELERATOR on import

    key = seed_of(seed, "weights", 0, 0)
    if stage_of(deepspeed) == WEIGHTS_SPLIT:
        torch.manual_seed(key)
        with Init(config_dict_or_path=dict(deepspeed)):
            return make(shape, checkpoint_activations=checkpoint_activations)
    with torch.device("meta"):
        model = make(shape, checkpoint_activations=checkpoint_activations)
    torch.manual_seed(key)
    fill(model, device=ranks.device, dtype=_dtype_of_weights(deepspeed), draws=ranks.is_first)
    return model


def fill(model: torch.nn.Module, *, device: torch.device, dtype: torch.dtype, draws: bool) -> None:
    """Give the modules of a model on the meta device their memory, one after another.

    Args:
        model: its modules draw their initial values in `reset_parameters`, as when it is made
            elsewhere.
        device: where it goes.
        dtype: of its parameters.
        draws: whether they get values: drawn on the CPU in fp32, whatever device and type.
    """
    for module in model.modules():
        reset = getattr(module, "reset_parameters", None)
        if reset is None:
            continue
        if draws:
            module.to_empty(device="cpu", recurse=False)
            reset()
            module.to(device, dtype)
        else:
            module.to(dtype).to_empty(device=device, recurse=False)


def _dtype_of_weights(deepspeed: Mapping[str, Any]) -> torch.dtype:
    """Return the type that DeepSpeed gives a model; fp32 where it does not treat all alike."""
    name = None if "data_types" in deepspeed else precision_of(deepspeed)
    return DTYPES[name or FP32]


class DeepSpeedEngine:
    """DeepSpeed's engine around a model."""

    def __init__(
        self,
        model: GLM,
        *,
        config: RunConfig,
        deepspeed: Mapping[str, Any],
        compiles: bool,
        ranks: Ranks,
    ) -> None:
        """Set up the engine.

        Args:
            model: of `make_model`.
            config: of the optimizer.
            deepspeed: complete settings (`trainer.deepspeed`).
            compiles: compile layers and loss.
            ranks: all of them call this.
        """
        import deepspeed as library  # noqa: PLC0415 - reads DS_ACCELERATOR on import

        self._ranks = ranks
        self.stage = stage_of(deepspeed)
        self._vocab_size = model.config.vocab_size
        self.micro_batch = int(deepspeed["train_micro_batch_size_per_gpu"])
        # With bf16 and sums of gradients in fp32, DeepSpeed prints what memory it has.
        with redirect_stdout(io.StringIO()):
            self.wrapped: Any = library.initialize(
                model=model,
                optimizer=_optimizer(model, config, deepspeed, device=ranks.device),
                config=dict(deepspeed),
            )[0]
        if compiles:
            model.compile_parts()

    def train_step(
        self, batch: Tensors, *, lr: float, seed: int, step: int, sources: Sequence[str]
    ) -> tuple[StepResult, LossTally]:
        """Train on this rank's part of a global batch; return its tally too.

        Args:
            batch: one row per sample, on the CPU.
            lr: learning rate.
            seed: of dropout.
            step: its number.
            sources: names of the batch's `source` numbers.

        Raises:
            DamageError: a token is outside the vocabulary.
        """
        self._check(batch)
        counts = torch.stack([batch["loss_mask"].sum(), batch["lengths"].sum()])
        total, num_tokens = self._ranks.sum(counts).tolist()
        results = []

        def loss_of(part: Tensors) -> Tensor:
            sums = self.wrapped(self._placed(part))
            results.append(LossSums(*(column.detach() for column in sums)))
            loss: Tensor = sums.loss.sum() * (self._ranks.world / max(total, 1))
            return loss

        parts = micro_batches(batch, self.micro_batch)
        applied, grad_norm = self.train_on(
            [partial(loss_of, part) for part in parts], lr=lr, seed=seed, step=step
        )
        tally = LossTally.empty(sources)
        for part, sums in zip(parts, results, strict=True):
            tally = tally.plus(part, sums)
        tally = tally.summed_over(self._ranks)
        outcome = StepResult(
            loss=tally.loss,
            num_tokens=num_tokens,
            num_samples=len(batch["tokens"]) * self._ranks.world,
            applied=applied,
            grad_norm=grad_norm,
        )
        return outcome, tally

    def train_on(
        self, parts: Sequence[MicroBatchLoss], *, lr: float, seed: int, step: int
    ) -> tuple[bool, float]:
        """Take a step of this rank's micro-batches; return whether weights changed, and the norm.

        Args:
            parts: equally many on every rank. DeepSpeed averages over the ranks: the losses are
                multiplied by their number.
            lr: learning rate.
            seed: of dropout.
            step: its number.
        """
        for group in self.wrapped.optimizer.param_groups:
            group["lr"] = lr
        for number, loss_of in enumerate(parts):
            self.wrapped.set_gradient_accumulation_boundary(number == len(parts) - 1)
            torch.manual_seed(seed_of(seed, "dropout", step, self._ranks.rank, number))
            loss = loss_of()
            # An infinite loss may have finite gradients: make them NaN, so that all ranks skip the
            # step.
            loss = loss * torch.where(loss.isfinite(), 1.0, math.nan)
            self.wrapped.backward(loss, scale_wrt_gas=False)
        return self._apply()

    def load(self, folder: Path, tag: str, *, step: int) -> None:
        """Load weights and optimizer from a checkpoint; no code in its files is run.

        Raises:
            UserError: the system does not let a file be read.
            DamageError: The checkpoint does not fit the engine, or holds another step than its
                file list says.
        """
        groups = self.wrapped.optimizer.param_groups
        options = [{k: v for k, v in group.items() if k != "params"} for group in groups]
        explained = explain_damage(
            folder / tag,
            f"DeepSpeed could not read {folder / tag}",
            f": it was damaged or changed. Restore it, or {IF_REMOVED}.",
        )
        # With bf16 and sums of gradients in fp32, DeepSpeed prints the name of a function.
        with explained, weights_only(deepspeed_types()), redirect_stdout(io.StringIO()):
            path, state = self.wrapped.load_checkpoint(str(folder), tag)
        self._repair_optimizer(options)
        if path is None or state.get("step") != step:
            raise DamageError(
                f"{folder / tag} does not hold step {step}, although its file list says so. "
                f"Restore it, or {IF_REMOVED}."
            )

    def _repair_optimizer(self, options: Sequence[Mapping[str, Any]]) -> None:
        """Undo what DeepSpeed 0.19.8 breaks when it loads a universal checkpoint at stage 3.

        It gives all groups the weight decay of the first, and makes all states share one tensor
        for the number of steps, which then advances once for each of them.
        """
        optimizer = self.wrapped.optimizer
        for group, own in zip(optimizer.param_groups, options, strict=True):
            group.update(own)
        for state in getattr(optimizer, "optimizer", optimizer).state.values():
            if isinstance(state.get("step"), torch.Tensor):
                state["step"] = state["step"].clone()

    def losses(self, part: Tensors) -> LossSums:
        """Return the losses of a micro-batch of windows; learn nothing."""
        self._check(part)
        self.wrapped.eval()
        with torch.no_grad():
            sums: LossSums = self.wrapped(self._placed(part))
        self.wrapped.train()
        return sums

    def monitor(self, event: str, figures: Mapping[str, float], samples: int) -> None:
        """Give figures to the monitors that DeepSpeed's JSON enables.

        The names are those of DeepSpeed's documentation: Train/Samples/train_loss. The learning
        rate it writes by itself.
        """
        monitor = self.wrapped.monitor
        if not monitor.enabled:
            return
        own = {name: value for name, value in figures.items() if name not in ("lr", "samples")}
        if event == TRAIN:
            own["train_loss"] = own.pop("loss")
        head = f"{event.capitalize()}/Samples"
        monitor.write_events(
            [(f"{head}/{visible_line(name)}", value, samples) for name, value in own.items()]
        )

    def forward_eval(self, batch: Tensors) -> LossSums:
        """Return the sums of a batch of this rank's rows; learn nothing.

        At ZeRO stage 3 all ranks call this equally often.
        """
        with self.eval_mode():
            sums: LossSums = self.wrapped(self._placed(batch))
        return sums

    @contextmanager
    def eval_mode(self) -> Iterator[None]:
        """Let the model answer for a while and learn nothing.

        Nothing is compiled: rows are of many widths. FlexAttention, when it is not, makes the full
        matrix of scores, so it is not used.
        """
        is_eager = torch.compiler.set_stance("force_eager")
        self.wrapped.eval()
        try:
            with torch.no_grad(), is_eager, self.wrapped.module.attending_by("sdpa"):
                yield
        finally:
            self.wrapped.train()

    def _apply(self) -> tuple[bool, float]:
        """Update the weights unless a gradient is not finite; return whether, and the norm.

        DeepSpeed's ZeRO optimizers skip such a step by themselves; plain AdamW, at stage 0, does
        not.
        """
        if self.stage == 0:
            gradients = [p.grad for p in self.wrapped.module.parameters() if p.grad is not None]
            norm = float(torch.nn.utils.get_total_norm(gradients))
            if not math.isfinite(norm):
                self.wrapped.zero_grad()
                return False, norm
            self.wrapped.step()
            return True, norm
        self._engine_step()
        return bool(self.wrapped.was_step_applied()), float(self.wrapped.get_global_grad_norm())

    def _engine_step(self) -> None:
        try:
            self.wrapped.step()
        except Exception as error:
            # DeepSpeed's loss scaler raises a plain Exception.
            if "loss scale" not in str(error):
                raise
            raise UserError(
                f"fp16: {error} The gradients are not finite at any scale: the weights have "
                "diverged. Resume from an earlier checkpoint (--resume DIR/step-N) with a lower "
                "--lr or a longer --warmup, or train in bf16 where the device can."
            ) from error

    def _placed(self, part: Tensors) -> Tensors:
        """Return the model's inputs on the device, which does not wait for them.

        The places of the loss are found here, because the CPU would wait for the GPU there.
        """
        tensors = {name: part[name] for name in _MODEL_INPUTS if name in part}
        tensors["places"] = part["loss_mask"].reshape(-1).nonzero().squeeze(1)
        if self._ranks.device.type == "cuda":
            tensors = {name: tensor.pin_memory() for name, tensor in tensors.items()}
        return {
            name: tensor.to(self._ranks.device, non_blocking=True)
            for name, tensor in tensors.items()
        }

    def _check(self, batch: Tensors) -> None:
        if (largest := int(batch["tokens"].max())) >= self._vocab_size:
            raise DamageError(
                f"the data have a token {largest}, but the vocabulary ends at "
                f"{self._vocab_size - 1}: {called('shards verify')} DIR says which file is damaged."
            )


def micro_batches(batch: Tensors, size: int) -> list[Tensors]:
    """Return the rows of a batch, `size` at a time, each part as wide as its loss reaches.

    Tokens after the last one with loss in any row have no influence on the loss.

    Args:
        batch: one row per sample.
        size: rows of a part.
    """
    rows = {name: batch[name] for name in _ROWS if name in batch}
    parts = []
    for i in range(0, len(batch["tokens"]), size):
        part = {name: tensor[i : i + size] for name, tensor in rows.items()}
        width = _reach(part)
        parts.append({name: x if x.dim() == 1 else x[..., :width] for name, x in part.items()})
    return parts


def _reach(part: Tensors) -> int:
    """Return the width that has all tokens with loss: a multiple of 64, or that of the tensors."""
    reach = part["loss_mask"].any(dim=0).nonzero()
    end = int(reach[-1]) + 1 if len(reach) else 1
    return min(-(-end // 64) * 64, part["tokens"].shape[1])


def seed_of(seed: int, purpose: str, *place: int) -> int:
    """Return a seed of PyTorch's generator, for a purpose at a place in a run."""
    key = np.array([text_key(seed, purpose)], np.uint64)
    for number in place:
        key = derive(key, np.array([number]))
    return int(key[0])


def use_deterministic_kernels() -> None:
    """Make PyTorch use only kernels with a fixed order of addition.

    On Hopper, attention is otherwise cuDNN's, whose gradients differ between two runs.
    """
    os.environ.setdefault(
        "CUBLAS_WORKSPACE_CONFIG", ":4096:8"
    )  # read when the first handle is made
    torch.use_deterministic_algorithms(True)


def is_compiled(*, stage: int, ranks: Ranks) -> bool:
    """Return whether a run is compiled; all ranks call this, and compile if each of them can.

    If not, the first rank reports why, except on a CPU, where nobody expects it.

    Args:
        stage: of ZeRO.
        ranks: of the run.
    """
    problems = ranks.gather(_problem(ranks.device, stage=stage))
    problem = next((problem for problem in problems if problem is not None), None)
    if problem and ranks.is_first:
        _log.warning("the model is not compiled, which is slower: %s", problem)
    return problem is None


def _problem(device: torch.device, *, stage: int) -> str | None:
    """Return why a device does not compile, None if it does; "" where it is no GPU."""
    if device.type != "cuda" or torch.version.cuda is None:
        return ""
    if stage > _MAX_STAGE:
        return f"at ZeRO stage {stage} weights are gathered module by module"
    major, minor = torch.cuda.get_device_capability(device)
    if (major, minor) < _AMPERE:
        return f"the GPU's compute capability is {major}.{minor}, and Triton needs 8.0"
    return _problem_of_trial(device)


def _problem_of_trial(device: torch.device) -> str | None:
    """Return the error of compiling a small function: of Triton, a compiler or its headers."""
    try:
        torch.compile(torch.nn.functional.gelu)(torch.ones(64, device=device))
    except Exception as error:  # noqa: BLE001  of torch, Triton or the compiler: it is reported
        return f"torch.compile does not work here ({one_line(error)})"
    return None


def _optimizer(
    model: GLM, config: RunConfig, deepspeed: Mapping[str, Any], *, device: torch.device
) -> torch.optim.Optimizer:
    """Return AdamW, or DeepSpeed's CPU Adam where the optimizer is offloaded."""
    groups = model.parameter_groups(config.weight_decay)
    options: dict[str, Any] = {"lr": config.lr, "betas": config.betas, "eps": config.eps}
    zero = deepspeed.get("zero_optimization", {})
    if zero.get("offload_optimizer", {}).get("device") in ("cpu", "nvme"):
        from deepspeed.ops.adam import DeepSpeedCPUAdam  # noqa: PLC0415 - compiles when it is made

        try:
            offloaded: torch.optim.Optimizer = DeepSpeedCPUAdam(groups, adamw_mode=True, **options)
        except RuntimeError as error:
            raise UserError(
                f"the optimizer is offloaded to the CPU, and DeepSpeed could not compile its Adam "
                f"for it ({error.__cause__ or error}): it needs g++ and ninja, and on a machine "
                "with GPUs the CUDA toolkit of torch's version."
            ) from error
        return offloaded
    return torch.optim.AdamW(groups, fused=device.type == "cuda", **options)
