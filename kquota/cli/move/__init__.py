"""`kquota move` and its commands."""
