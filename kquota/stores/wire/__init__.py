"""Kafka's protocol by kafka-python's connection manager: what librdkafka cannot say. Only importer of `kafka`.

One command opens one `Wire`; each module beside `connection` implements one port on it.
"""
