"""`python -m man.generate`: the man pages, of the app's own options and the prose beside it."""
