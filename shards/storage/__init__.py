"""Files on disks and behind URLs: either whole or absent, in folders that can be locked."""
