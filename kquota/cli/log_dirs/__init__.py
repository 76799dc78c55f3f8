"""`kquota log-dirs`."""
