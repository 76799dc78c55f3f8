"""`kquota throttle set`."""
