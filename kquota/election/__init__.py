"""Leader elections: the partitions that need one, and elections in batches (KIP-460)."""
