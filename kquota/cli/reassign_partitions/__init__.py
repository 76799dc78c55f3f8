"""`kquota reassign-partitions`."""
