"""The view of running moves, for `move watch` and `reassign-partitions --execute --wait`."""
