"""Configs of topics and brokers, the source of each value, and values without effect."""
