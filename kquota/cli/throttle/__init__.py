"""`kquota throttle` and its commands, one folder each."""
