"""`kquota topics`."""
