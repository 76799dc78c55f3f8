"""`kquota quota top`."""
