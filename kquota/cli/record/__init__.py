"""`kquota record`: one record of all runs for every host of a team."""
