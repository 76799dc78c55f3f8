"""A real cluster on loopback: Kafka, ZooKeeper or both. It needs PySpark, Java and, for Kafka, downloaded jars."""
