"""Settings of topics and brokers, where each value comes from, and which values have no effect."""
