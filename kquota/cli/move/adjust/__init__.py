"""`kquota move adjust`."""
