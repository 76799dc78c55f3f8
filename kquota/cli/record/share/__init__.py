"""`kquota record share`."""
