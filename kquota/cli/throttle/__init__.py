"""`kquota throttle` and its commands, a module each."""
