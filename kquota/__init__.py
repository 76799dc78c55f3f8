"""kquota: every Kafka quota, and throttled partition moves that always give their throttles back."""

from kquota.library import connect

__all__ = ["connect"]

__version__ = "0.1.0"
