"""`kquota configs`."""
