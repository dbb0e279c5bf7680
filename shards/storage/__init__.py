"""Files on disks and behind URLs, each whole or absent, in folders that can be locked."""
