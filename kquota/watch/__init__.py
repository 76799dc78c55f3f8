"""Watching running moves: progress, time left, and why a move makes no progress."""
