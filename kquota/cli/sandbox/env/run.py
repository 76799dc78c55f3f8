"""`kquota sandbox env`: print two variables for a shell."""

from __future__ import annotations

from kquota.cli.contract import FAILED
from kquota.cli.output import Lines
from kquota.cli.sandbox.env.command import EnvOptions
from kquota.sandbox import cluster


def run(options: EnvOptions) -> Lines:
    """Prints nothing for a sandbox that is not running."""
    found = cluster.find(options.name)
    if found is None or not found.running:
        hint = f"sandbox {options.name} is not running. Start it with: kquota sandbox up {options.name}"
        return Lines(lines=(), notes=(hint,), code=FAILED)
    variables = {"KQUOTA_BOOTSTRAP_SERVER": found.bootstrap, "KQUOTA_ZOOKEEPER": found.zookeeper}
    return Lines(lines=tuple(f"export {name}={value}" for name, value in variables.items() if value))
