"""kquota: every Kafka quota, and throttled partition moves that always give their throttles back."""

__version__ = "0.1.0"
