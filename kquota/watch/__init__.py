"""Watches running moves: their progress, the time left, and the reasons why a move makes no progress."""
