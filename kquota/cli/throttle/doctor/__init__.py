"""`kquota throttle doctor`."""
