"""`kquota move abort`."""
