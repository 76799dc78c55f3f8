"""`kquota move estimate`."""
