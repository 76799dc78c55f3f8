"""`kquota sandbox env`."""
