"""`kquota sandbox up`."""
