"""The view of running moves, for `move watch`, `move adjust`, `move run` and `reassign-partitions --execute --wait`."""
