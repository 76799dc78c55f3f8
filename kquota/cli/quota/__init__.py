"""`kquota quota` and its commands."""
