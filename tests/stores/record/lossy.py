"""A connection that loses or replaces answers to Produce, like a broker or a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from kafka.errors import KafkaTimeoutError
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from kquota.errors import Refused, Unreachable
from kquota.stores.admin.connection import Wire
from kquota.terms import BrokerId

Ask: TypeAlias = Callable[[], Any]
Fault: TypeAlias = Callable[[Ask], Any]


class LossyWire(Wire):
    """A connection whose appends have the given faults, one after the other. A fault receives the function that sends
    the request.
    """

    faults: list[Fault]
    always: Fault | None = None
    """The fault of every append after these faults, or None."""

    def ask(self, request: Any, broker: BrokerId | None = None, seconds: float | None = None) -> Any:
        def ask() -> Any:
            return Wire.ask(self, request, broker, seconds)

        if isinstance(request, ProduceRequest) and (fault := self.faults.pop(0) if self.faults else self.always):
            return fault(ask)
        return ask()


def not_sent(ask: Ask) -> Any:
    raise Unreachable("no answer to Produce (it was not sent)")


def not_supported(ask: Ask) -> Any:
    raise Refused("this release of Kafka does not support Produce")


def answer_lost(ask: Ask) -> Any:
    ask()
    return never_answered(ask)


def never_answered(ask: Ask) -> Any:
    raise Unreachable("no answer to Produce (timed out)") from KafkaTimeoutError()


def after(code: int) -> Fault:
    """Return a fault: the batch is appended, and the answer is this error."""

    def fault(ask: Ask) -> Any:
        answer = ask()
        found = answer.responses[0].partition_responses[0]
        found.error_code, found.base_offset = code, -1
        return answer

    return fault


def instead(code: int) -> Fault:
    """Return a fault: the batch is not appended, and the answer is this error."""

    def fault(ask: Ask) -> Any:
        partition = ProduceResponse.TopicProduceResponse.PartitionProduceResponse(
            index=0, error_code=code, base_offset=-1
        )
        return ProduceResponse(responses=[ProduceResponse.TopicProduceResponse(partition_responses=[partition])])

    return fault


def between(what: Callable[[], None], fault: Fault) -> Fault:
    """Return a fault: the event `what` happens before the batch arrives, and then `fault`."""

    def both(ask: Ask) -> Any:
        what()
        return fault(ask)

    return both
