"""How fast a move goes: KIP-73's formulas, and how brokers share their throttles. Pure."""
