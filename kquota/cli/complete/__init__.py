"""`kquota complete`, hidden."""
