"""Kafka's protocol with kafka-python's connection manager. Only this package imports `kafka`.

librdkafka does not have all of the requests. One command opens one `Wire`, and most modules implement one port on it.
"""

import importlib.util
import sys

# `import kafka` also imports its consumer, producer and admin client. That takes a fifth of the time of a command, and
# kquota uses none of them. So the package is registered without being executed. Its modules are imported as usual.
if "kafka" not in sys.modules and (_spec := importlib.util.find_spec("kafka")) is not None:
    sys.modules["kafka"] = importlib.util.module_from_spec(_spec)
