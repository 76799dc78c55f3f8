"""WHAT IS THROTTLED, BY WHOM: what stands on topics and brokers, what flows, and what was left behind."""
