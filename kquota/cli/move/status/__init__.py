"""`kquota move status`."""
