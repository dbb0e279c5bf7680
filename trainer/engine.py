"""Takes a step of training on a global batch with DeepSpeed's engine.

The loss of a step is the sum over the tokens of the global batch divided by their number. It does
not depend on the split into ranks and micro-batches, because the number is known before the first
backward pass. DeepSpeed averages gradients over the ranks, so each rank's sum is first multiplied
by the number of ranks.

Dropout is PyTorch's own. Its generator is seeded anew for each micro-batch, from (seed, step, rank,
number of the micro-batch), so a run that resumes on the same number of ranks has the same masks,
and no state of a generator has to be saved.
"""

import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from shards.commands.output import visible_line
from shards.commands.table import called
from shards.errors import DamageError, UserError
from trainer.checkpoint import IF_REMOVED
from trainer.config import RunConfig
from trainer.deepspeed import scales_loss, stage_of
from trainer.distributed import CollectiveError, Ranks
from trainer.initial_model import seed_of
from trainer.loader import Tensors
from trainer.log import TRAIN
from trainer.metrics import LossTally, StepResult
from trainer.model.loss import LossSums
from trainer.model.model import GLM
from trainer.torch_file import deepspeed_types, explain_damage, one_line, weights_only

_MODEL_INPUTS = ("tokens", "targets", "loss_mask", "position_ids", "sep", "pieces")
_MONITORS = {"wandb": "wandb", "comet": "comet_ml", "tensorboard": "tensorboard"}
"""Sections of DeepSpeed's JSON, and the package that each needs."""
_ROWS = (*_MODEL_INPUTS, "source", "objective")


MicroBatchLoss = Callable[[], Tensor]
"""Computes a micro-batch's share of the loss of a step, a scalar with gradients."""


class DeepSpeedEngine:
    """DeepSpeed's engine around a model.

    train_step ─▶ micro_batches ─▶ train_micro_batches: forward, backward, …, forward, backward
        ─▶ _apply: clip the gradients and update the weights, unless a gradient is not finite
    """

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
            model: the result of `make_model`.
            config: the options of the optimizer.
            deepspeed: complete settings (`trainer.deepspeed`).
            compiles: whether to compile layers and loss.
            ranks: the ranks of the run, which all call this.
        """
        import deepspeed as library  # noqa: PLC0415 - reads DS_ACCELERATOR on import

        self._ranks = ranks
        self.stage = stage_of(deepspeed)
        self.scales_loss = scales_loss(deepspeed)
        """Whether the loss scale of fp16 is dynamic, so that steps are skipped until the scale
        fits."""
        self._vocab_size = model.config.vocab_size
        self.micro_batch = int(deepspeed["train_micro_batch_size_per_gpu"])
        # With bf16 and sums of gradients in fp32, DeepSpeed prints its memory usage.
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
        """Train on this rank's part of a global batch; return the step's result and tally.

        Args:
            batch: one row per sample, on the CPU.
            lr: the learning rate.
            seed: the seed of dropout.
            step: the number of the step.
            sources: the names of the sources, by the batch's `source` numbers.

        Raises:
            DamageError: a token is outside the vocabulary.
        """
        self._check(batch)
        counts = torch.stack([batch["loss_mask"].sum(), batch["lengths"].sum()])
        total, num_tokens = self._ranks.sum(counts).tolist()
        results = []

        def loss_of(part: Tensors) -> Tensor:
            sums = self.wrapped(self._to_device(part))
            results.append(LossSums(*(column.detach() for column in sums)))
            loss: Tensor = sums.loss.sum() * (self._ranks.world / max(total, 1))
            return loss

        parts = micro_batches(batch, self.micro_batch)
        applied, grad_norm = self.train_micro_batches(
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

    def train_micro_batches(
        self, parts: Sequence[MicroBatchLoss], *, lr: float, seed: int, step: int
    ) -> tuple[bool, float]:
        """Take a step: run each micro-batch forward and backward, then update the weights.

        Return whether the weights changed, and the norm of the gradients.

        Args:
            parts: the micro-batches, equally many on every rank. Their losses are multiplied by the
                number of ranks, over which DeepSpeed averages.
            lr: the learning rate.
            seed: the seed of dropout.
            step: the number of the step.
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

    def _apply(self) -> tuple[bool, float]:
        """Update the weights if all gradients are finite; return whether they were, and their norm.

        DeepSpeed's ZeRO optimizers themselves skip a step whose gradients are not finite; plain
        AdamW, at stage 0, does not.
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
            # DeepSpeed's loss scaler raises a plain Exception, on all ranks.
            if "loss scale" not in str(error):
                raise
            raise CollectiveError(
                f"fp16: {error} The gradients are not finite at any scale: the weights have "
                "diverged. Resume from an earlier checkpoint (--resume DIR/step-N) with a lower "
                "--lr or a longer --warmup, or train in bf16 where the device can."
            ) from error

    def forward_eval(self, batch: Tensors, *, eager: bool = False) -> LossSums:
        """Return the losses of a batch of this rank without training.

        At ZeRO stage 3 all ranks call this equally often.

        Args:
            batch: one row per sample, on the CPU.
            eager: as for `eval_mode`.
        """
        self._check(batch)
        with self.eval_mode(eager=eager):
            sums: LossSums = self.wrapped(self._to_device(batch))
        return sums

    @contextmanager
    def eval_mode(self, *, eager: bool) -> Iterator[None]:
        """Switch the model to evaluation within the block.

        Args:
            eager: whether to run the model uncompiled, for rows of many widths, each of which would
                be compiled anew. FlexAttention is then not used, because it makes the full matrix
                of scores if it is not compiled.
        """
        self.wrapped.eval()
        try:
            with torch.no_grad(), ExitStack() as stack:
                if eager:
                    stack.enter_context(torch.compiler.set_stance("force_eager"))
                    stack.enter_context(self.wrapped.module.use_attention("sdpa"))
                yield
        finally:
            self.wrapped.train()

    def _to_device(self, part: Tensors) -> Tensors:
        """Return the model's inputs, copied to the device asynchronously.

        The indices of the tokens with loss are found here on the CPU: if the GPU found them, the
        CPU would have to wait for the GPU.
        """
        tensors = {name: part[name] for name in _MODEL_INPUTS if name in part}
        tensors["loss_indices"] = part["loss_mask"].reshape(-1).nonzero().squeeze(1)
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
                f"{self._vocab_size - 1}: {called('shards verify')} DIR names the damaged file."
            )

    def load(self, folder: Path, tag: str, *, step: int) -> None:
        """Load weights and optimizer from a checkpoint; no code in its files is run.

        Raises:
            UserError: the system does not allow a file to be read.
            DamageError: The checkpoint does not fit the engine, or contains a different step from
                the one in its file list.
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
                f"{folder / tag} does not contain step {step}, although its file list says so. "
                f"Restore it, or {IF_REMOVED}."
            )

    def _repair_optimizer(self, options: Sequence[Mapping[str, Any]]) -> None:
        """Undo what DeepSpeed 0.19.8 breaks when it loads a universal checkpoint at stage 3.

        DeepSpeed gives all groups the weight decay of the first group, and makes all states share
        one tensor for the number of steps, which then advances once for each state.
        """
        optimizer = self.wrapped.optimizer
        for group, own in zip(optimizer.param_groups, options, strict=True):
            group.update(own)
        for state in getattr(optimizer, "optimizer", optimizer).state.values():
            if isinstance(state.get("step"), torch.Tensor):
                state["step"] = state["step"].clone()

    def monitor(self, event: str, figures: Mapping[str, float], samples: int) -> None:
        """Pass figures to the monitors that DeepSpeed's JSON enables.

        The names are those of DeepSpeed's documentation, such as Train/Samples/train_loss.
        DeepSpeed itself writes the learning rate.
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


def micro_batches(batch: Tensors, size: int) -> list[Tensors]:
    """Split a batch into parts of `size` rows, each cut after its last token with loss.

    Columns after the last column that has a token with loss do not affect the loss.

    Args:
        batch: one row per sample.
        size: the number of rows of a part.
    """
    rows = {name: batch[name] for name in _ROWS if name in batch}
    parts = []
    for i in range(0, len(batch["tokens"]), size):
        part = {name: tensor[i : i + size] for name, tensor in rows.items()}
        width = _reach(part)
        parts.append({name: x if x.dim() == 1 else x[..., :width] for name, x in part.items()})
    return parts


def _reach(part: Tensors) -> int:
    """Return the width that contains all tokens with loss: a multiple of 64 or the full width."""
    reach = part["loss_mask"].any(dim=0).nonzero()
    end = int(reach[-1]) + 1 if len(reach) else 1
    return min(-(-end // 64) * 64, part["tokens"].shape[1])


def check_settings(deepspeed: Mapping[str, Any]) -> None:
    """Check that DeepSpeed accepts these settings together; each alone is already checked.

    Raises:
        UserError: DeepSpeed refuses them; the message quotes the reason.
    """
    _check_monitors(deepspeed)
    # The module is imported here because it reads DS_ACCELERATOR on import.
    from deepspeed.runtime.config import DeepSpeedConfig  # noqa: PLC0415

    try:
        DeepSpeedConfig(dict(deepspeed))
    except Exception as error:  # assertions, pydantic's errors and plain exceptions
        raise UserError(
            f"DeepSpeed does not accept the settings in its JSON: {one_line(error)}. Correct the "
            "file."
        ) from error


def _check_monitors(deepspeed: Mapping[str, Any]) -> None:
    """Check that the packages of the enabled monitors are installed."""
    for section, package in _MONITORS.items():
        if deepspeed.get(section, {}).get("enabled") and find_spec(package) is None:
            raise UserError(
                f"the DeepSpeed JSON enables {section}, and {package} is not installed: pip "
                f'install {package}, or set "enabled": false there.'
            )


def _optimizer(
    model: GLM, config: RunConfig, deepspeed: Mapping[str, Any], *, device: torch.device
) -> torch.optim.Optimizer:
    """Return AdamW, or DeepSpeed's CPU Adam if the optimizer is offloaded."""
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
