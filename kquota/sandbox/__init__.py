"""A REAL CLUSTER ON THIS MACHINE: ZooKeeper and Kafka on loopback, from pip packages and Java alone."""
