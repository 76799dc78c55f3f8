"""`kquota quota diff`."""
