"""Kafka's ZooKeeper: its znodes, and the ports on them. Only this package imports `kazoo`."""
