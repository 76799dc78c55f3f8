"""`kquota move report`."""
