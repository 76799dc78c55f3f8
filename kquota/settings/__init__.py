"""Settings: what topics and brokers are set to, where each value comes from, and which values have no effect."""
