"""WHAT MOVES, IS IT DONE: reassignment plans, their throttles, their progress (KIP-73, KIP-455)."""
