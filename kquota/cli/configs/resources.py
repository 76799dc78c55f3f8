"""`kquota configs` for topics, brokers and other resources: describe configs, or write one change and read it back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from kquota.cli import clock, world
from kquota.cli.configs.answer import (
    AlteredConfigs,
    Described,
    DescribedConfigs,
    Unwritten,
    absence,
    shown_value,
)
from kquota.cli.contract import DONE, FAILED, say, without_retry
from kquota.cli.rates import warn_if_low
from kquota.cli.suggestion import suggested
from kquota.entity_types import CLIENT_METRICS, GROUPS
from kquota.errors import Invalid, KquotaError, Refused
from kquota.list_text import named_brokers
from kquota.measure import rate_in_full
from kquota.settings import actions, ignored, rates, zookeeper_values
from kquota.settings.actions import Altered
from kquota.settings.change import ConfigChange
from kquota.settings.port import Configs
from kquota.settings.resource import BROKERS, Entry, Resource, ResourceKind
from kquota.terms import BYTE_RATES, WITHOUT_ZOOKEEPER, BrokerId, Default


def describe(at: world.Where, kind: ResourceKind, name: str | Default | None, everything: bool) -> DescribedConfigs:
    """Return the dynamic configs of one resource, or of every resource of the kind if `name` is None.

    `everything` adds static and default configs. If `name` is None and some brokers do not answer, the answer has their
    errors, exit code 1, and the configs of the other brokers. A note names the brokers that are not alive.

    Raises Refused if the cluster refuses the request, for a kind of resource that the brokers are too old for, and for
    a broker whose configs the controllers cannot show. With `everything`, also raises Refused for a missing topic and a
    dead broker. Raises Unreachable if the cluster does not answer.
    """
    resource = None if name is None else Resource(kind=kind, name=name)
    found: Mapping[Resource, Sequence[Entry]]
    lost: Mapping[Resource, KquotaError] = {}
    over_brokers = kind == BROKERS and at.zookeeper is None
    asked = set() if resource is None else {resource}
    with world.configs_and_dead(at) as (configs, dead):
        release = _release_of_brokers(at, configs)
        actions.must_exist(kind, release)
        if resource is None:
            asked = _registered(configs, dead) if over_brokers else asked
            found, lost = actions.describe_all(configs, kind)
        elif everything and not _is_unread(at, resource):
            found = {resource: actions.entries(configs, resource)}
        else:
            found = _existing(configs, resource, listed=at.controllers is None or at.bootstrap is not None)
    if resource is not None and resource not in found and _is_unread(at, resource):
        raise Refused(
            f"{resource}: the configs are unknown, because a controller shows only its own configs. Use "
            "--bootstrap-server while the broker is alive"
        )
    shown = {r: [entry for entry in entries if entry.dynamic or everything] for r, entries in found.items()}
    absent = resource if resource not in found else None
    missing = {one for one in asked if over_brokers and one.of_broker and one not in found and one not in lost}
    if resource is not None and at.zookeeper is not None:
        # Kafka 2.8's tool shows a resource that was requested by name even if the resource does not exist.
        shown.setdefault(resource, [])
    return DescribedConfigs(
        resources=shown,
        absent=absent,
        everything=everything,
        over_zookeeper=at.zookeeper is not None,
        data_notes=() if absent is None else (absence(absent),),
        closing_notes=(*_not_alive(missing, release), *(f"error: {error}" for error in lost.values())),
        code=FAILED if lost else DONE,
    )


def _registered(configs: Configs, dead: Callable[[], Collection[BrokerId]]) -> set[Resource]:
    """Return the live brokers, and the dead brokers that the cluster lists. If the dead brokers are unknown, warn."""
    listed = {*configs.resources(BROKERS)}
    try:
        return listed | {Resource(kind=BROKERS, name=str(broker)) for broker in dead()}
    except KquotaError as error:
        say(f"warning: it is unknown which brokers are dead: {without_retry(error)}. Run the same command again")
        return listed


def _not_alive(missing: Collection[Resource], release: tuple[int, ...] | None) -> Iterator[str]:
    """Yield a note about brokers that are not alive, because Kafka's answer leaves out or denies configs that they may
    have. `release` is the release of the brokers.
    """
    if missing:
        are, its, them = ("is", "its", "broker") if len(missing) == 1 else ("are", "their", "brokers")
        dead = named_brokers([one.broker for one in missing])
        note = f"note: {dead} {are} not alive, so {its} configs are unknown. Start the {them} and run the command again"
        if release is None or release >= WITHOUT_ZOOKEEPER:
            yield note
        else:
            yield f"{note}. On a cluster with ZooKeeper, you can also use --zookeeper"


def _existing(configs: Configs, resource: Resource, *, listed: bool) -> Described:
    """Describe one resource. Return {} for a missing group and for a missing subscription to client metrics, because
    brokers report only defaults for them. `listed` is false if kquota is connected only to controllers, which do not
    list these resources. A missing one then counts as existing.
    """
    found = configs.describe([resource])
    named_freely = listed and resource.kind in (GROUPS, CLIENT_METRICS)
    if named_freely and not any(entry.dynamic for entry in found.get(resource, ())):
        return found if resource in configs.resources(resource.kind) else {}
    return found


def alter(
    at: world.Where, resource: Resource, add: Mapping[str, str], delete: tuple[str, ...], *, dry_run: bool
) -> AlteredConfigs | Unwritten:
    """Set and delete configs of one resource, and wait until the change is visible. Rates and warnings go to stderr.

    kquota does not wait if the controllers cannot show the configs of the broker. A dry run makes the same checks, but
    writes nothing.

    Raises Invalid for an empty throttled replica list and for a config that this resource or connection does not
    accept. Raises Refused for a missing topic, an unknown logger, and a dead broker that this connection cannot change.
    Also raises Refused for a kind of resource that the brokers are too old for, for a value that they ignore, and for a
    change that the cluster refuses. Raises Unreachable if the cluster does not answer, and Unseen if the change does
    not become visible in time.
    """
    change = ConfigChange(
        resource=resource,
        add={key: ignored.value(resource, key, text) for key, text in add.items()},
        delete=delete,
    )
    if at.zookeeper is not None:
        zookeeper_values.must_be_sound(change)
    for rate in BYTE_RATES:
        if rate in add:
            warn_if_low(f"{rate}={add[rate]}", add[rate], int(change.add[rate]), "throttle")
    _echo(change)
    notes = []
    with world.configs(at) as configs:
        release = configs.release()
        actions.must_exist(resource.kind, _release_of_brokers(at, configs))
        for warning in ignored.must_take_effect(change, release):
            say(f"warning: {warning}")
        unread = _is_unread(at, resource) and not configs.describe([resource])
        if dry_run:
            return _unwritten(configs, change, unread=unread)
        if unread:
            configs.alter([change])
            notes.append(
                f"{resource}: the controllers accepted the change, but cannot show it. A live broker applies the "
                "change now, and a dead broker when it starts. After that, check the change with "
                f"{suggested(f'configs --describe --broker {resource.name}')}"
            )
            return AlteredConfigs(altered=resource, over_zookeeper=False, notes=tuple(notes))
        altered = actions.alter(configs, change, clock.until_seen())
        changed = bool(change.add) or len(altered.absent) < len(change.delete)
        if changed and at.zookeeper is not None and resource.of_broker and resource not in configs.resources(BROKERS):
            notes.append(f"{resource} is dead. The change takes effect when the broker starts")
    notes += _remarks(resource, altered, release)
    return AlteredConfigs(altered=resource, over_zookeeper=at.zookeeper is not None, notes=tuple(notes))


def _release_of_brokers(at: world.Where, configs: Configs) -> tuple[int, ...] | None:
    """Return the release of the brokers, or None over controllers. kquota derives a release from the supported
    requests, and controllers support fewer requests than brokers.
    """
    return None if world.only_controllers(at) else configs.release()


def _is_unread(at: world.Where, resource: Resource) -> bool:
    """True for the configs of one broker (not the broker defaults) if only controllers are given, because a controller
    shows only its own configs.
    """
    return world.only_controllers(at) and resource.kind == BROKERS and resource.of_broker


def _unwritten(configs: Configs, change: ConfigChange, *, unread: bool) -> Unwritten:
    if not unread:
        actions.ready(configs, change)
    secret = change.resource.kind == BROKERS
    shown = {k: None if secret and zookeeper_values.is_password(k) else v for k, v in change.add.items()}
    return Unwritten(altered=change.resource, added=shown, deleted=change.delete)


def _remarks(resource: Resource, altered: Altered, release: tuple[int, ...] | None) -> Iterator[str]:
    for absent in altered.absent:
        yield f"{resource}: {absent} was not set; nothing to delete"
    for entry in altered.behind:
        if rates.in_force(entry, release):
            yield f"{resource}: {entry.key} is now {shown_value(entry) or 'empty'}, from {entry.source}"


def must_not_be_secret(keys: Iterable[str]) -> None:
    """Raise Invalid for keys of secrets, because every user of the machine can read command lines."""
    if secret := sorted(filter(zookeeper_values.is_password, keys)):
        raise Invalid(
            f"{', '.join(secret)}: a secret on a command line is visible to other users of this machine. Use "
            "--add-config-file"
        )


def _echo(change: ConfigChange) -> None:
    """Print each byte rate as kquota understood it, so that the operator sees a wrong unit immediately."""
    for name in BYTE_RATES:
        if name in change.add:
            say(f"{change.resource}: {name} = {rate_in_full(int(change.add[name]))}")
