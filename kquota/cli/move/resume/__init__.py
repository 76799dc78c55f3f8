"""`kquota move resume`."""
