"""A custom quality profile: drops pages that shout or are cut off.

python -m pipelines.wudao --quality zh=my_rules:web+glm
"""

from pipelines.quality import Bounds, MeasuredText, Profile, Threshold

SHOUTS, ENDS = "!！", "。！？…!?.”』」)）"


def measure(text: MeasuredText, _: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    """Return the text, unchanged, and a number for each metric."""
    shouts = sum(map(text.text.count, SHOUTS))
    whole = text.text.rstrip().endswith(tuple(ENDS))
    return text, (1000 * shouts / max(1, len(text.text)), float(whole))


web = Profile(
    family="web",
    metrics=("shouts", "whole"),
    thresholds=(
        Threshold("max_shouts", 5, "shouting", "exclamation marks per 1,000 characters"),
        Threshold("min_whole", 1, "cut-off", "1: the text must end like a sentence"),
    ),
    measure=measure,
)
