"""`kquota record`: one record of runs that all hosts of a team share."""
