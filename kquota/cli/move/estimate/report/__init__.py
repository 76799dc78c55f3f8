"""`kquota move estimate --report`."""
