"""The login to brokers and to ZooKeeper: the files that define it, and its settings in kafka-python and librdkafka."""
