"""The processes of a run: they join, exchange values, agree to stop, and leave.

The launcher (`deepspeed`, `torchrun`, `srun`) passes each process its rank in the environment;
if there is no launcher, there is a single process. The device comes from `deepspeed.accelerator`.
"""

import logging
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import torch

from shards.commands.output import print_message
from shards.errors import UserError
from shards.storage.disk import disk_error
from trainer.deepspeed import BF16, FP16, FP32

T = TypeVar("T")

DTYPES = {BF16: torch.bfloat16, FP16: torch.float16, FP32: torch.float32}
"""Types of torch, by the names of the precisions."""

_AMPERE = (8, 0)
"""The first CUDA capability that computes in bf16; older cards only emulate it, slowly."""


_PATIENCE = 10.0
"""Seconds that a rank waits for the other ranks before it reports that."""
_log = logging.getLogger(__name__)


class CollectiveError(UserError):
    """An error that all ranks know of and only the first rank reports."""


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """This process as a rank of the run."""

    rank: int
    world: int
    local_rank: int
    """The number of this rank on its node."""
    device: torch.device

    @classmethod
    def join(cls) -> "Ranks":
        """Wait until all processes have found each other, and return this process as a rank."""
        _describe_single_process()
        # Set only if there is no accelerator: the variable would force the CPU on a machine with a
        # GPU.
        if not torch.accelerator.is_available():
            os.environ.setdefault("DS_ACCELERATOR", "cpu")
        # With torch 2.13 and later, DeepSpeed causes this warning once per rank.
        warnings.filterwarnings("ignore", r".*is deprecated", FutureWarning, "torch.distributed")
        # DeepSpeed does not name the device to NCCL; a single process has only one.
        warnings.filterwarnings("ignore", r"barrier\(\): using the device", UserWarning)
        import deepspeed  # noqa: PLC0415 - reads DS_ACCELERATOR when it is imported
        from deepspeed.accelerator import get_accelerator  # noqa: PLC0415 - as above

        _skip_kernel_build(deepspeed)
        accelerator = get_accelerator()
        local_rank = int(os.environ["LOCAL_RANK"])
        if accelerator.device_name() != "cpu":
            accelerator.set_device(local_rank)
        with _reported_wait():
            deepspeed.init_distributed(accelerator.communication_backend_name(), verbose=False)
        return cls(
            rank=int(os.environ["RANK"]),
            world=int(os.environ["WORLD_SIZE"]),
            local_rank=local_rank,
            device=torch.device(accelerator.current_device_name()),
        )

    @property
    def is_first(self) -> bool:
        """Whether this process reports on behalf of all ranks."""
        return self.rank == 0

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Return, on the CPU, the sum of a small tensor over all ranks."""
        # Ascend's NPUs cannot reduce float64.
        is_wide = values.dtype == torch.float64 and self.device.type == "npu"
        total = values.to(self.device, torch.float32 if is_wide else values.dtype)
        if self.world > 1:
            torch.distributed.all_reduce(total)
        return total.cpu()

    def gather(self, value: T) -> list[T]:
        """Return the values of all ranks, by rank; values must be picklable."""
        if self.world == 1:
            return [value]
        values: list[Any] = [None] * self.world
        torch.distributed.all_gather_object(values, value)
        return values

    def barrier(self) -> None:
        """Return once all ranks have called this."""
        if self.world > 1:
            torch.distributed.barrier()

    def run_on_all_ranks(self, work: Callable[[], T]) -> T:
        """Return the result of `work` on this rank if it succeeds on all ranks.

        Raises:
            CollectiveError: `work` raised a UserError or OSError on some rank; raised on all ranks,
                so that none waits for the rest.
        """
        result, problem = None, None
        try:
            result = work()
        except UserError as error:
            problem = str(error)
        except OSError as error:
            problem = str(disk_error(error, Path(error.filename or Path.cwd())))
        problems = self.gather(problem)
        if any(problems):
            raise CollectiveError(describe_problems(problems))
        return result  # type: ignore[return-value]  # without a problem, work has returned

    def run_on_rank0(self, work: Callable[[], T]) -> T:
        """Run `work` on the first rank and return its result to all ranks.

        Raises:
            CollectiveError: `work` failed; raised on all ranks.
        """
        return self.gather(self.run_on_all_ranks(lambda: work() if self.is_first else None))[0]  # type: ignore[return-value]  # of the first

    def precisions(self) -> tuple[str, ...]:
        """Return the precisions that the devices of all ranks support, best first."""
        by_rank = self.gather(_supported_precisions(self.device))
        return tuple(name for name in by_rank[0] if all(name in other for other in by_rank))


def describe_problems(problems: Sequence[str | None]) -> str:
    """Return the problems of all ranks as one text without repetitions; empty if there are none."""
    first_ranks: dict[str, int] = {}
    for rank, problem in enumerate(problems):
        if problem:
            first_ranks.setdefault(problem, rank)
    if len(first_ranks) == 1 and all(problems):
        return next(iter(first_ranks))
    return "\n  ".join(f"rank {rank}: {problem}" for problem, rank in first_ranks.items())


def _describe_single_process() -> None:
    """Describe a run of one process in the environment, unless a launcher has described a run.

    Otherwise DeepSpeed assumes that the process belongs to an MPI job.
    """
    os.environ.setdefault("LOCAL_RANK", "0")
    if os.environ.setdefault("WORLD_SIZE", "1") != "1":
        return
    os.environ.setdefault("RANK", "0")
    # Port 0 means any free port: no other process has to find it.
    for name, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}.items():
        os.environ.setdefault(name, value)


@contextmanager
def _reported_wait() -> Iterator[None]:
    """Report after a while that this rank waits for other ranks, and the address to meet at."""
    rank, world, host, port = (
        os.environ[name] for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    )
    line = f"rank {rank} of {world} is waiting for the other ranks at {host}:{port}"
    timer = threading.Timer(_PATIENCE, _log.warning, [line])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _skip_kernel_build(deepspeed: Any) -> None:
    """Keep DeepSpeed from compiling a communication kernel for CPUs at each start.

    Only DeepSpeed's tensor-parallel inference uses the kernel; the build takes a minute, needs a
    compiler, and leaves a lock that blocks every later start if it is killed.
    """
    if not torch.accelerator.is_available():
        deepspeed.ops.__compatible_ops__ = {}


def _supported_precisions(device: torch.device) -> tuple[str, ...]:
    from deepspeed.accelerator import get_accelerator  # noqa: PLC0415 - see Ranks.join

    accelerator = get_accelerator()
    bf16, fp16 = accelerator.is_bf16_supported(), accelerator.is_fp16_supported()
    if device.type == "cuda":
        bf16 = bf16 and torch.cuda.get_device_capability(device) >= _AMPERE
    halves = [name for name, supported in ((BF16, bf16), (FP16, fp16)) if supported]
    return (FP32, *halves) if device.type == "cpu" else (*halves, FP32)


def leave() -> None:
    """Leave the process group at the end of a run that succeeded.

    Without the barrier gloo sometimes aborts the process (pytorch/pytorch#190489); NCCL does not.
    """
    if torch.distributed.get_backend() == "gloo":
        torch.distributed.barrier()
    torch.distributed.destroy_process_group()


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


class Stop:
    """Records, within its `with` block, whether this process received a signal to stop.

    Launchers pass signals to one rank after the other, and some launchers pass them twice; so no
    signal ends a process by itself, and the ranks agree on the step to stop at.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._heard = dict.fromkeys(_SIGNALS, False)
        self._former_handlers: dict[int, Any] = {}
        self._is_reported = os.environ.get("RANK", "0") != "0"

    def __enter__(self) -> "Stop":
        for number in _SIGNALS:
            if signal.getsignal(number) == signal.SIG_IGN:
                continue  # under nohup a closed terminal does not end a process
            self._former_handlers[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former_handlers.items():
            signal.signal(number, handler)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        self._report()
        self._heard[signal.Signals(number)] = True

    def _report(self) -> None:
        """Report once, on the first rank, that the run will stop."""
        if not self._is_reported:
            self._is_reported = True
            with suppress(OSError):  # the terminal may be closed
                print_message("stopping: this step is finished, then the run is saved", start="\n")

    @property
    def is_requested(self) -> bool:
        """Whether this process has received a signal; other ranks may not know yet."""
        return any(self._heard.values())

    def exit_code(self) -> int:
        """Return 128 + the number of a signal that a rank received, else 0; all ranks call this."""
        counts = self._ranks.sum(
            torch.tensor([int(heard) for heard in self._heard.values()])
        ).tolist()
        codes = [128 + number for number, count in zip(_SIGNALS, counts, strict=True) if count]
        if codes:
            self._report()  # the signal may have reached only a different rank
        return max(codes, default=0)
