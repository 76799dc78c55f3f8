"""The completions that a packager installs, `kquota.bash`, `_kquota` and `kquota.fish`, and their generator."""
