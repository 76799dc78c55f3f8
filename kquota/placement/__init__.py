"""The placement of replicas: Kafka's own rule for a random placement, and a planner that copies few bytes."""
