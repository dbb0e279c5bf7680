"""at.py on a run whose segments are merged into groups.

python kill_in_group.py PATTERN N COMMAND pipelines.wudao FLAGS...
"""

import runpy
from pathlib import Path

from pipelines.merge import group

group.MOST_SLICES, group.ROWS_PER_GROUP = 0, 100
runpy.run_path(str(Path(__file__).parents[1] / "at.py"), run_name="__main__")
