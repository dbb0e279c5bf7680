"""Processes for rows, forked from one that has imported a wing and nothing else.

A fork copies the page tables. Of a process that runs all kinds of tests, with a gigabyte in
memory, that takes a fifth of a second; of this one a few hundredths.

    python -m tests.refusals.lean WING

reads jobs as lines of JSON and answers each with the exit code.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cache

from tests.refusals.job import ROOT, Job, import_wing, run_job

WORTH_IT = 3
"""So many rows are run in forks of the test's own process before a leaner one is started."""


_RAN: Counter[str] = Counter()


def run(wing: str, job: Job) -> int:
    """Return the exit code of a job of a wing."""
    _RAN[wing] += 1
    if _RAN[wing] > WORTH_IT:
        return _lean(wing).run(job)
    import_wing(wing)
    return run_job(job)


@dataclass(frozen=True)
class Lean:
    """The process that jobs are forked from; it ends when this one closes its input."""

    process: "subprocess.Popen[str]"

    @classmethod
    def start(cls, wing: str) -> "Lean":
        return cls(
            subprocess.Popen(
                [sys.executable, "-m", "tests.refusals.lean", wing],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )

    def run(self, job: Job) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asdict(job)) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@cache
def _lean(wing: str) -> Lean:
    return Lean.start(wing)


def main(wing: str) -> None:
    """Run jobs until there are no more."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # for what libraries say when they are imported
    import_wing(wing)
    for line in sys.stdin:
        answers.write(f"{run_job(Job(**json.loads(line)))}\n")


if __name__ == "__main__":
    main(sys.argv[1])
