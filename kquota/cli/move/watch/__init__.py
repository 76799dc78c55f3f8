"""`kquota move watch`."""
