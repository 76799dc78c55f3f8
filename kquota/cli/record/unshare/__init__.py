"""`kquota record unshare`."""
