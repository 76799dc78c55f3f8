"""`kquota quota apply`."""
