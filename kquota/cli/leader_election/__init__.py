"""`kquota leader-election`."""
