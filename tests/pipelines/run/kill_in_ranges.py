"""at.py on a run whose segments are cut by ranges of the order.

python kill_in_ranges.py PATTERN N COMMAND pipelines.wudao FLAGS...
"""

import runpy
from pathlib import Path

from pipelines.merge import ranges

ranges.MOST_SHARD_SLICES = ranges.PASS_WEIGHT = 0
runpy.run_path(str(Path(__file__).parents[1] / "at.py"), run_name="__main__")
