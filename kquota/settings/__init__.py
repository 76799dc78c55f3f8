"""Configs of topics, brokers and other resources, the source of each value, and values without effect."""
