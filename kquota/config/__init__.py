"""WHAT A TOPIC OR A BROKER IS SET TO: its dynamic configs, where each value comes from, and what of them is in vain."""
