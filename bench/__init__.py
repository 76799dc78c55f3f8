"""`python -m bench` compares kquota with Kafka's own tools on one cluster in one run, as ratios of times."""
