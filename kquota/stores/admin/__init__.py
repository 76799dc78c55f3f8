"""Kafka's protocol with kafka-python's connection manager. Only this package imports `kafka`.

kquota uses kafka-python here because librdkafka does not support every request that kquota sends. Only `load` and
`small_writes` use librdkafka. A command usually opens one `Wire`, and classes such as `WireConfigs` implement ports on
it.
"""

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final

_LATE: Final = "kafka", "kafka.protocol.admin", "kafka.protocol.consumer"
_HOMES: Final = {
    "ListGroupsRequest": "kafka.protocol.admin.groups",
    "OffsetFetchRequest": "kafka.protocol.consumer.group",
}
"""The modules that define the names that kafka-python's connection manager imports from packages in `_LATE`."""


def _execute_late(name: str) -> None:
    """Register a package of kafka-python, but execute it only when code reads a name that is not in `_HOMES`.

    `import kafka` also imports its consumer, producer and admin client, and the packages of messages load the schemas
    of 60 requests. These imports take a third of the time of a short command, and kquota needs hardly any of them.
    """
    spec = find_spec(name)
    if name in sys.modules or spec is None or spec.loader is None:
        return
    package = module_from_spec(spec)
    vars(package)["__getattr__"] = lambda wanted: _taken(package, wanted)
    sys.modules[name] = package


def _taken(package: ModuleType, wanted: str) -> Any:
    if wanted in _HOMES:
        return getattr(import_module(_HOMES[wanted]), wanted)
    del vars(package)["__getattr__"]
    assert package.__spec__ is not None and package.__spec__.loader is not None
    package.__spec__.loader.exec_module(package)
    return getattr(package, wanted)


for _name in _LATE:
    _execute_late(_name)
