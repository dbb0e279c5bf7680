"""Checks that what an engine counted is what report.json says."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

Counts = Mapping[str, int]
"""Counters by name."""

_VERDICTS = ("dropped", "quarantined")


def told(report: Mapping[str, Any]) -> Counter[str]:
    """The account of a report, of all sources, under the names of the counters."""
    counts: Counter[str] = Counter()
    for account in report["accounting"].values():
        counts["records read"] += account["read"]
        counts["records kept"] += account["kept"]
        counts["bytes in"] += sum(account["bytes"].values())
        for verdict in _VERDICTS:
            for reason, rows in account[verdict].items():
                counts[f"records {verdict}"] += rows
                counts[f"records {verdict} ({reason})"] += rows
    return counts


def check_metrics(counts: Mapping[str, Counts], report: Mapping[str, Any]) -> None:
    """Check that the counters of map, drops and merge, by phase, agree with a run's report."""
    account = told(report)
    assert {phase: counts[phase]["items"] for phase in report["stages"]} == {
        phase: tasks["all"] for phase, tasks in report["stages"].items()
    }
    merged = Counter({name: counts["merge"][name] for name in counts["merge"] if _of_account(name)})
    assert +merged == +account
    mapped, dropped = counts["map"], counts["drops"]
    assert mapped["records read"] == account["records read"]
    assert mapped["bytes in"] == account["bytes in"]
    assert mapped["records kept"] - dropped["records dropped"] == account["records kept"]
    for name in account:
        if name.startswith("records quarantined") or "(glm-" in name:
            assert mapped[name] == account[name] > 0


def _of_account(name: str) -> bool:
    return name.startswith("records ") or name == "bytes in"
