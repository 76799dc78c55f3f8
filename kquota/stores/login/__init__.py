"""The login to brokers and to ZooKeeper: the operator's files that define it, and its settings in both clients."""
