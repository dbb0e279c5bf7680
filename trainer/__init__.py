"""The GLM trainer: reads shards."""

import shards as shards  # before all others: it finds out whether there is room for them
from shards.interrupt import end_at_interrupt

end_at_interrupt()
