"""`kquota quota explain`."""
