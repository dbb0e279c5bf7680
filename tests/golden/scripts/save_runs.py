from dataclasses import replace
from pathlib import Path

from shards import BatchSize, Blend, SamplingPlan

run = SamplingPlan(
    mixes=(Blend(start=0, data=("data@1",)), Blend(start=20, data=("data@2",))),
    batches=(BatchSize(step=0, size=2), BatchSize(step=8, size=4)),
    seed=1,
    scatters=1,
    length=128,
    steps=30,
)
run.save(Path("run.json"))
later = (Blend(start=0, data=("data@2",)), Blend(start=60, data=("data@8",)))
replace(run, mixes=later, followed=60).save(Path("followed.json"))
print([run.position_of(step) for step in (0, 7, 8, 9, 30)])
print([run.step_of(position) for position in (0, 15, 16, 19, 20)])
