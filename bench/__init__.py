"""`python -m bench`: kquota against Kafka's own tools on one cluster in one run. Ratios, never absolute times."""
