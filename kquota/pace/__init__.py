"""The speed of a move: KIP-73's formulas, and how brokers share their throttles. The code is pure."""
