"""The option `--balance-log-dirs` of `move plan`."""
