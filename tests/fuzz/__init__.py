"""Mutated text for every reader of outside text. `readers` is the table, and `python -m tests.fuzz` is the long run."""
