"""`kquota quota export`, `diff` and `apply`."""
