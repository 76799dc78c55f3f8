"""`kquota quota probe`."""
