"""`kquota sandbox status`."""
