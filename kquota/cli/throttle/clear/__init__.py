"""`kquota throttle clear`."""
