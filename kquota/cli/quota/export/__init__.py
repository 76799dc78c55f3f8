"""`kquota quota export`."""
