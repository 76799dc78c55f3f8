"""A server with the two queries of Prometheus that kquota sends, over the samples that a test gives it.

It is not Prometheus: it applies the selector, but knows no other PromQL.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Series = Sequence[tuple[Mapping[str, str], str]]
"""Labels, with `__name__`, and the value at a time."""
_MATCHER = re.compile(r'(\w+)(=~|=)("(?:[^"\\]|\\.)*")')


def selected(selector: str, labels: Mapping[str, str]) -> bool:
    matchers = [(name, how, json.loads(text)) for name, how, text in _MATCHER.findall(selector)]
    assert "{" + ",".join(f"{name}{how}{json.dumps(text)}" for name, how, text in matchers) + "}" == selector
    return all(
        re.fullmatch(text, labels.get(name, "")) if how == "=~" else labels.get(name, "") == text
        for name, how, text in matchers
    )


@contextmanager
def serving(series_at: Callable[[float], Series], now: Callable[[], float]) -> Iterator[str]:
    """Yield the URL of a server with these series."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            given = {name: values[0] for name, values in parse_qs(url.query).items()}
            if url.path == "/api/v1/query":
                self.answer(200, found(given["query"], [now()], "vector"))
            elif url.path == "/api/v1/query_range":
                start, end, step = (float(given[name]) for name in ("start", "end", "step"))
                times = [start + n * step for n in range(int((end - start) // step) + 1)]
                self.answer(200, found(given["query"], times, "matrix"))
            else:
                self.answer(404, {"status": "error", "errorType": "not_found", "error": "no such path"})

        def answer(self, status: int, document: Any) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(document).encode())

        def log_message(self, *given: object) -> None:
            pass

    def found(selector: str, times: Sequence[float], kind: str) -> dict[str, Any]:
        every: dict[str, dict[str, Any]] = {}
        for time in times:
            for labels, value in series_at(time):
                if selected(selector, labels):
                    one = every.setdefault(json.dumps(labels), {"metric": labels, "values": []})
                    one["values"].append([time, value])
        if kind == "vector":
            result = [{"metric": one["metric"], "value": one["values"][0]} for one in every.values()]
        else:
            result = [*every.values()]
        return {"status": "success", "data": {"resultType": kind, "result": result}}

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
