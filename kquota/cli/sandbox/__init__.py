"""`kquota sandbox`."""
