"""`kquota quota simulate`."""
