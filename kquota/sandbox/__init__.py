"""A real cluster on this machine: ZooKeeper and Kafka on loopback, which need only pip packages and Java."""
