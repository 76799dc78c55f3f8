"""The operator's files that define the login to brokers and to ZooKeeper."""
