"""Partition moves: reassignment plans, their throttles and their progress (KIP-73, KIP-455)."""
