"""The environment in which a launcher starts a process: its rank, and where to meet the others.

`deepspeed` and `torchrun` set RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Without a
launcher there is none of them, and the process is a run by itself.
"""

from collections.abc import Mapping

from shards.errors import UserError

_TASKS = {
    "SLURM_STEP_NUM_TASKS": "srun",
    "OMPI_COMM_WORLD_SIZE": "Open MPI's mpirun",
    "PMI_SIZE": "mpirun",
}
"""Variables with the number of processes that another program started, and the program."""
_NUMBERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT")
_MEETING = ("WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_SCRIPTS = (
    "Start the run with torchrun (trainer/launch/torchrun.sh on one machine, torchrun-nodes.sh on "
    "several), deepspeed (trainer/launch/deepspeed.sh) or, under Slurm, sbatch "
    "trainer/launch/slurm.sbatch"
)


def check_launcher(environment: Mapping[str, str]) -> None:
    """Check that a launcher set all of its variables, or none.

    With half of them each process would train the whole run by itself, or wait for others for ever.

    Raises:
        UserError: Variables are missing or are no numbers; the message names them and the scripts
            that set them all.
    """
    for name in _NUMBERS:
        value = environment.get(name, "0")
        if not value.isdecimal():
            raise UserError(f"{name} is {value!r} in the environment: expected a whole number.")
    if "RANK" in environment:
        missing = [name for name in _MEETING if name not in environment]
        if missing and environment.get("WORLD_SIZE") != "1":
            raise UserError(
                f"RANK is {environment['RANK']} in the environment, and {', '.join(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} not set: the ranks cannot find each "
                f"other. {_SCRIPTS}, or unset RANK to train in this process alone."
            )
        return
    world = environment.get("WORLD_SIZE", "1")
    if world != "1":
        raise UserError(
            f"WORLD_SIZE is {world} in the environment, and RANK is not set. {_SCRIPTS}, or unset "
            "WORLD_SIZE to train in this process alone."
        )
    for name, program in _TASKS.items():
        if environment.get(name, "1") != "1":
            raise UserError(
                f"{program} started {environment[name]} processes ({name}), and RANK is not set: "
                f"each would train the whole run by itself. {_SCRIPTS}."
            )
