"""Checks that an engine's counters agree with report.json."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

Counts = Mapping[str, int]
"""The values of counters by name."""

_VERDICTS = ("dropped", "quarantined")


def account_of(report: Mapping[str, Any]) -> Counter[str]:
    """Return the sum of all sources' accounts in a report, by the names of counters."""
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
    """Check that an engine's counters of each stage (map, drops, merge) agree with the report."""
    account = account_of(report)
    assert {stage: counts[stage]["items"] for stage in report["stages"]} == {
        stage: counts_of["all"] for stage, counts_of in report["stages"].items()
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
