"""The time, throttle and disk space of a move: KIP-73's formulas, and a model of each broker's throttle. No I/O."""
