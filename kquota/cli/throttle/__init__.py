"""`kquota throttle` and its commands, one module each."""
