"""`quota top` with 10,000 clients, whose metrics come from one exporter or from three.

`python -m bench.top` prints the CPU time and the memory of whole processes. It is not a part of `make bench`.
"""

from __future__ import annotations

import statistics
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from tabulate import tabulate

from bench.quotas import seed
from bench.race import Cost, cost, kquota, say, spread
from bench.servers import brokers
from kquota.terms import DEFAULT

CLIENTS: Final = 10_000
USERS: Final = 500
BROKERS: Final = 3
TARGET_SECONDS: Final = 1.0
ROUNDS: Final = 5


def main() -> None:
    """Print one table with the CPU time and the memory. The clients of each user have a quota."""
    with brokers("top") as found, ExitStack() as stack:
        seed(found.bootstrap, range(USERS), DEFAULT)
        urls = [stack.enter_context(_exporter(broker)) for broker in range(1, BROKERS + 1)]
        words = ["quota", "top", "--bootstrap-server", found.bootstrap, "--once", "--metrics"]
        costs = {
            "one broker reports all clients": _costs([*words, urls[0]]),
            "the same, as JSON": _costs([*words, urls[0], "--output", "json"]),
            f"each of {BROKERS} brokers reports all clients": _costs([*words, ",".join(urls)]),
        }
    rows = [[name, *_row(found)] for name, found in costs.items()]
    headers = [f"{CLIENTS:,} clients", "CPU, s", "memory, MB", f"{TARGET_SECONDS:g} s"]
    print(tabulate(rows, headers=headers, disable_numparse=True))


def _row(costs: list[Cost]) -> tuple[str, str, str]:
    seconds = [one.cpu_seconds for one in costs]
    kept = statistics.median(seconds) <= TARGET_SECONDS
    return spread(seconds), f"{max(one.megabytes for one in costs):.0f}", "kept" if kept else "BROKEN"


def _costs(words: list[str]) -> list[Cost]:
    say(f"{' '.join(words[:2])}: {ROUNDS} rounds")
    return [cost(kquota(*words)) for _ in range(ROUNDS)]


def _metrics(broker: int) -> Iterator[str]:
    """Yield the lines of an exporter with its default names: two buckets for each client, as a broker has them, among
    12,000 lines of other metrics.
    """
    yield f'kafka_server_app_info_StartTimeMs{{id="{broker}"}} 1.795526187041E12'
    for number in range(12_000):
        yield f'kafka_log_Log_Value{{name="Size",partition="{number}",topic="orders"}} {number}.0'
    for number in range(CLIENTS):
        of = f'client_id="client-{number}",user="user-{number % USERS}"'
        yield f"kafka_server_Produce_byte_rate{{{of}}} {number * 100.5}"
        yield f"kafka_server_Produce_throttle_time{{{of}}} {'NaN' if number % 50 else '0.0'}"
        yield f"kafka_server_Request_request_time{{{of}}} 0.5"
        yield f"kafka_server_Request_throttle_time{{{of}}} NaN"


@contextmanager
def _exporter(broker: int) -> Iterator[str]:
    body = "".join(f"{line}\n" for line in _metrics(broker)).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()


if __name__ == "__main__":
    main()
