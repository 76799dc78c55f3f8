"""`kquota record status`."""
