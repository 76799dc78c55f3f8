"""`kquota move plan`."""
