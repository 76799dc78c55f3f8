"""`kquota sandbox down`."""
