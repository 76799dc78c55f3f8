"""WHO MAY USE HOW MUCH: entities, their limits, and the changes an operator asks for (KIP-13, KIP-124, KIP-599)."""
