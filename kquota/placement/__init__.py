"""Where replicas should be: Kafka's own rule for a random placement, and the planner that moves the fewest bytes."""
