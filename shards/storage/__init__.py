"""Files wherever they lie: whole or absent, locked, on disks and behind URLs."""
