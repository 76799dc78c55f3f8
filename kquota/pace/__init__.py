"""HOW FAST CAN A MOVE GO: KIP-73's formulas and who gets which share of a throttle. Pure."""
