"""What a packager installs for TAB: `kquota.bash`, `_kquota`, `kquota.fish`, and how they are made."""
