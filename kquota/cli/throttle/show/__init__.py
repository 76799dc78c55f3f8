"""`kquota throttle show`."""
