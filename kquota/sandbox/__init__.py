"""A real cluster on this machine: ZooKeeper and Kafka on loopback. It needs PySpark, Java and downloaded Kafka jars."""
