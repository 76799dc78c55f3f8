"""`kquota move run`."""
