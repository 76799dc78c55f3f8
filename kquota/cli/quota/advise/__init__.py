"""`kquota quota advise`."""
