"""`kquota configs` for topics and brokers: write one change and read it back, or describe configs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kquota.cli import world
from kquota.cli.configs.answer import AlteredConfigs, DescribedConfigs, absence, shown_value
from kquota.cli.contract import DONE, FAILED, say
from kquota.cli.rates import warn_if_low
from kquota.errors import Invalid, KquotaError, Refused
from kquota.measure import human_rate
from kquota.settings import actions, ignored, rates, zookeeper_values
from kquota.settings.actions import Altered
from kquota.settings.change import ConfigChange
from kquota.settings.resource import BROKERS, Entry, Kind, Resource
from kquota.terms import BYTE_RATES, DEFAULT, Default


def describe(at: world.Where, kind: Kind, name: str | Default | None, everything: bool) -> DescribedConfigs:
    """The dynamic configs of one topic or broker, or of all (None); with `everything` also static and default ones.

    A broker that does not answer is reported as an error, and the others are still shown.
    """
    resource = None if name is None else Resource(kind=kind, name=name)
    found: Mapping[Resource, Sequence[Entry]]
    lost: Sequence[KquotaError] = ()
    with world.configs(at) as configs:
        if resource is None:
            found, lost = actions.describe_all(configs, kind)
        elif everything:
            found = {resource: actions.entries(configs, resource)}
        else:
            found = configs.describe([resource])
    if resource is not None and resource not in found and _is_unread(at, resource):
        raise Refused(
            f"{resource}: a controller shows only its own configs, so these are unknown here. Use --bootstrap-server "
            "while the broker is alive"
        )
    shown = {r: [entry for entry in entries if entry.dynamic or everything] for r, entries in found.items()}
    absent = resource if resource not in found else None
    if resource is not None and at.zookeeper is not None:
        # Kafka 2.8's tool shows what was requested by name, even if it does not exist.
        shown.setdefault(resource, [])
    return DescribedConfigs(
        resources=shown,
        absent=absent,
        everything=everything,
        over_zookeeper=at.zookeeper is not None,
        data_notes=() if absent is None else (absence(absent),),
        closing_notes=tuple(f"error: {error}" for error in lost),
        code=FAILED if lost else DONE,
    )


def alter(at: world.Where, resource: Resource, add: Mapping[str, str], delete: tuple[str, ...]) -> AlteredConfigs:
    """Set and delete configs of one topic or broker until they are visible. Possible mistakes go to stderr."""
    change = ConfigChange(
        resource=resource,
        add={key: ignored.value(resource, key, text) for key, text in add.items()},
        delete=delete,
    )
    if at.zookeeper is not None:
        zookeeper_values.must_be_sound(change)
    for key in BYTE_RATES:
        if key in add:
            warn_if_low(f"{key}={add[key]}", add[key], int(change.add[key]), "throttle")
    _echo(change)
    notes = []
    with world.configs(at) as configs:
        release = configs.release()
        for warning in ignored.must_take_effect(change, release):
            say(f"warning: {warning}")
        if _is_unread(at, resource) and not configs.describe([resource]):
            configs.alter([change])
            notes.append(
                f"{resource}: the controllers accepted the change, and cannot show it. It is in force when the broker "
                "runs; --describe with --bootstrap-server then shows it"
            )
            return AlteredConfigs(altered=resource, over_zookeeper=False, notes=tuple(notes))
        altered = actions.alter(configs, change, world.until_seen())
        is_one_broker = resource.kind == BROKERS and resource.name is not DEFAULT
        if at.zookeeper is not None and is_one_broker and resource not in configs.resources(BROKERS):
            notes.append(f"{resource} is not running. The change takes effect when it starts")
    notes += _remarks(resource, altered, release)
    return AlteredConfigs(altered=resource, over_zookeeper=at.zookeeper is not None, notes=tuple(notes))


def _is_unread(at: world.Where, resource: Resource) -> bool:
    """True for the configs of a broker, if the controllers take the place of the brokers."""
    return world.only_controllers(at) and resource.kind == BROKERS and resource.name is not DEFAULT


def _remarks(resource: Resource, altered: Altered, release: tuple[int, ...] | None) -> Iterator[str]:
    """The keys that were not set, and the values that now apply instead of deleted ones."""
    for key in altered.absent:
        yield f"{resource}: {key} was not set; nothing to delete"
    for entry in altered.behind:
        if rates.in_force(entry, release):
            yield f"{resource}: {entry.key} is now {shown_value(entry) or 'empty'}, from {entry.source}"


def must_not_be_secret(keys: Iterable[str]) -> None:
    """Raises Invalid for keys of secrets, because every user of the machine can read command lines."""
    if secret := sorted(filter(zookeeper_values.is_password, keys)):
        raise Invalid(
            f"{', '.join(secret)}: a secret on a command line is visible to other users of this machine. Use "
            "--add-config-file"
        )


def _echo(change: ConfigChange) -> None:
    """Print how a rate was understood, so that a wrong unit is noticed immediately."""
    for key in BYTE_RATES:
        if key in change.add:
            rate = change.add[key]
            say(f"{change.resource}: {key} = {rate} bytes per second ({human_rate(int(rate))})")
