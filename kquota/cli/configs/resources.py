"""`kquota configs` on topics and brokers: what is changed and shown, in the words of Kafka's own tool."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from kquota.cli import world
from kquota.cli.configs.quotas_printed import HIDDEN
from kquota.cli.contract import DONE, FAILED, complain, printable, say
from kquota.cli.options import Output
from kquota.config import actions, ignored, unchecked
from kquota.config.change import ConfigChange
from kquota.config.resource import BROKERS, Entry, Kind, Resource
from kquota.errors import Invalid, KquotaError
from kquota.terms import DEFAULT, THROTTLE_RATES, Default

Found: TypeAlias = Mapping[Resource, Sequence[Entry]]

TSV_HEADER: Final = ("type", "name", "key", "value", "source", "sensitive")


def describe(at: world.Where, kind: Kind, name: str | Default | None, *, everything: bool, output: Output) -> int:
    """Print the dynamic configs of one topic or broker, or of all (None); with `everything` also what stands behind.

    A broker that does not answer hides no other: it is named, and the command has failed.
    """
    resource = None if name is None else Resource(kind=kind, name=name)
    lost: Sequence[KquotaError] = ()
    with world.configs(at) as configs:
        if resource is None:
            found, lost = actions.describe_all(configs, kind)
        elif everything:
            found = {resource: actions.entries(configs, resource)}
        else:
            found = configs.describe([resource])
    shown = {r: [entry for entry in found[r] if entry.dynamic or everything] for r in found}
    if resource is not None and at.zookeeper is not None:
        # Kafka 2.8's tool names what was asked for by name, whether it is there or not.
        shown.setdefault(resource, [])
    if output is Output.text:
        lines = zookeeper_lines(shown) if at.zookeeper is not None else admin_lines(shown, everything=everything)
        if resource is not None and resource not in shown:
            lines = [absent(resource)]
        print("".join(f"{printable(line)}\n" for line in lines), end="")
    else:
        if resource is not None and resource not in found:
            say(absent(resource))
        print(_table(shown) if output is Output.tsv else _document(shown), end="")
    for error in lost:
        complain(str(error))
    return FAILED if lost else DONE


def alter(at: world.Where, resource: Resource, add: Mapping[str, str], delete: tuple[str, ...], output: Output) -> int:
    """Set and delete configs of one topic or broker, until they are seen; what may not be meant goes to stderr."""
    change = ConfigChange(
        resource=resource,
        add={key: ignored.value(resource, key, text) for key, text in add.items()},
        delete=delete,
    )
    if at.zookeeper is not None:
        unchecked.must_be_sound(change)
    _echo(change)
    with world.configs(at) as configs:
        release = configs.release()
        for warning in ignored.must_take_effect(change, release):
            say(f"warning: {warning}")
        altered = actions.alter(configs, change, world.until_seen())
        asleep = at.zookeeper is not None and _is_one_broker(resource) and resource not in configs.resources(BROKERS)
    if asleep:
        say(f"{resource} is not alive: it takes this in when it starts")
    for key in altered.absent:
        say(f"{resource}: {key} was not set; nothing to delete")
    for entry in altered.behind:
        if ignored.in_force(entry, release):
            say(f"{resource}: {entry.key} is now {_value(entry) or 'empty'}, from {entry.source}")
    print(_altered(at, resource, output), end="")
    return DONE


def must_not_be_secret(keys: Iterable[str]) -> None:
    """Raises Invalid for keys of secrets: every user of the machine can read its processes' command lines."""
    if secret := sorted(filter(unchecked.is_password, keys)):
        raise Invalid(
            f"{', '.join(secret)}: a secret does not belong on a command line; give it with --add-config-file"
        )


def absent(resource: Resource) -> str:
    """Kafka's words for a topic that does not exist and for a broker that is not alive."""
    return f"The {resource.kind[:-1]} '{resource.name}' doesn't exist and doesn't have dynamic config."


def admin_lines(found: Found, *, everything: bool) -> list[str]:
    """kafka-configs' --describe on --bootstrap-server, as Kafka 4.3.1 prints it."""
    lines = []
    for resource, entries in found.items():
        if resource.name is DEFAULT:
            lines.append(f"Default configs for {resource.kind} in the cluster are:")
        else:
            lines.append(f"{'All' if everything else 'Dynamic'} configs for {resource.kind[:-1]} {resource.name} are:")
        lines += [
            f"  {entry.key}={_value(entry)} sensitive={_java(entry.sensitive)} synonyms={{{_synonyms(entry)}}}"
            for entry in entries
        ]
    return lines


def zookeeper_lines(found: Found) -> list[str]:
    """kafka-configs' --describe on --zookeeper, as Kafka 2.8 prints it; passwords are not told."""
    return [
        f"Configs for {zookeeper_words(resource)} are "
        + ",".join(f"{entry.key}={HIDDEN if entry.sensitive else entry.value}" for entry in entries)
        for resource, entries in found.items()
    ]


def zookeeper_words(resource: Resource) -> str:
    """A topic or broker in the words of the ZooKeeper path of Kafka 2.8's tool."""
    kind = "brokers" if resource.kind == BROKERS else "topic"
    return f"default {kind}" if resource.name is DEFAULT else f"{kind} '{resource.name}'"


def _altered(at: world.Where, resource: Resource, output: Output) -> str:
    if output is Output.json:
        return json.dumps({"version": 1, "altered": _named(resource)}, ensure_ascii=False) + "\n"
    if output is Output.tsv:
        from kquota.cli.tsv import table

        return table(TSV_HEADER[:2], [(resource.kind[:-1], _name(resource))])
    if at.zookeeper is not None:
        return f"Completed updating config for entity: {zookeeper_words(resource)}.\n"
    if resource.name is DEFAULT:
        return f"Completed updating default config for {resource.kind} in the cluster.\n"
    return f"Completed updating config for {resource.kind[:-1]} {resource.name}.\n"


def _document(found: Found) -> str:
    resources = [{**_named(resource), "configs": [_entry(e) for e in entries]} for resource, entries in found.items()]
    return json.dumps({"version": 1, "resources": resources}, ensure_ascii=False, indent=2) + "\n"


def _entry(entry: Entry) -> dict[str, object]:
    secret = entry.sensitive
    return {
        "key": entry.key,
        "value": None if secret else entry.value,
        "source": entry.source,
        "sensitive": secret,
        "synonyms": [{"source": s.source, "key": s.key, "value": None if secret else s.value} for s in entry.synonyms],
    }


def _table(found: Found) -> str:
    from kquota.cli.tsv import table

    return table(
        TSV_HEADER,
        (
            (
                resource.kind[:-1],
                _name(resource),
                entry.key,
                None if entry.sensitive else entry.value,
                entry.source,
                _java(entry.sensitive),
            )
            for resource, entries in found.items()
            for entry in entries
        ),
    )


def _named(resource: Resource) -> dict[str, object]:
    """For JSON, where null is the default of all brokers."""
    name = _name(resource)
    return {resource.kind[:-1]: int(name) if name is not None and resource.kind == BROKERS else name}


def _name(resource: Resource) -> str | None:
    return None if isinstance(resource.name, Default) else resource.name


def _is_one_broker(resource: Resource) -> bool:
    return resource.kind == BROKERS and resource.name is not DEFAULT


def _synonyms(entry: Entry) -> str:
    return ", ".join(
        f"{s.source}:{s.key}={_java(HIDDEN if entry.sensitive and s.value else s.value)}" for s in entry.synonyms
    )


def _value(entry: Entry) -> str:
    return _java(HIDDEN if entry.sensitive and entry.value else entry.value)


def _java(value: str | bool | None) -> str:
    """As Java prints it; a broker tells no secret, and its null is shown as Kafka's tool shows it."""
    if value is None:
        return "null"
    return value if isinstance(value, str) else str(value).lower()


def _echo(change: ConfigChange) -> None:
    """What was understood of a rate, so that a mistake of units is seen at once."""
    from kquota.measure import human_rate

    for key in THROTTLE_RATES:
        if key in change.add:
            rate = change.add[key]
            say(f"{change.resource}: {key} = {rate} bytes per second ({human_rate(int(rate))})")
