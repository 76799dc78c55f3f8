"""`kquota complete` (hidden)."""
