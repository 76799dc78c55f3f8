"""`kquota.durable`, under the name by which `stores.history` imports it."""

from __future__ import annotations

from kquota.durable import sync

__all__ = ["sync"]
