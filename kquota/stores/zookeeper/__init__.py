"""Kafka's ZooKeeper: its znodes, and the ports on them. The only importer of `kazoo`."""
