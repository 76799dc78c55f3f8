"""Kafka's protocol with kafka-python's connection manager. Only this package and `login.kafka_python` import `kafka`.

kquota uses kafka-python here because librdkafka does not support every request that kquota sends. In this package, only
`load` and `small_writes` use librdkafka. A command usually opens one `Wire`. Classes such as `WireConfigs` use the
`Wire` to implement ports.
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
"""Names that kafka-python's connection manager imports from packages in `_LATE`, with the modules that define them."""


def _execute_late(name: str) -> None:
    """Register a package of kafka-python without executing it. The execution would import 60 schemas and three clients,
    which takes a third of the time of a short command.

    The first read of a name that is not in `_HOMES` executes the package.
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
