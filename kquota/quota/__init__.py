"""Client quotas: entities, their limits, and the changes that an operator makes (KIP-13, KIP-124, KIP-599, KIP-612)."""
