"""Kafka's protocol by kafka-python's connection manager: what librdkafka cannot say. Only importer of `kafka`.

One command opens one `Wire`; each module beside `connection` implements one port on it.
"""

import importlib.util
import sys

# `import kafka` builds its consumer, its producer and its admin client first, which is a fifth of a whole command and
# nothing that we use. So the package is registered without being run; the modules below it are imported as ever.
if "kafka" not in sys.modules and (_spec := importlib.util.find_spec("kafka")) is not None:
    sys.modules["kafka"] = importlib.util.module_from_spec(_spec)
