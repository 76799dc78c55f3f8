"""`kquota quota` and its commands, a folder each."""
