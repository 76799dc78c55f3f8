"""`kquota sandbox demo`."""
