"""The placement of replicas: Kafka's own rule for a random placement, and the planner, which copies few bytes."""
