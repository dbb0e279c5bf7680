from pathlib import Path

from shards import BatchSize, Blend, SamplingPlan

SamplingPlan(
    mixes=(Blend(start=0, data=("data@1",)), Blend(start=20, data=("data@2",))),
    batches=(BatchSize(step=0, size=2), BatchSize(step=8, size=70)),
    seed=1,
    scatters=1,
    length=64,
    steps=12,
).save(Path("run.json"))
