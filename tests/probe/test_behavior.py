"""The verdict on a client from its requests and its throttled responses."""

from __future__ import annotations

from kquota.probe.behavior import BehaviorRecord, Honors


def test_a_client_that_waits_honors_the_throttle_time() -> None:
    record = BehaviorRecord()
    seen = record.connection()
    seen.requested(0.0)
    seen.requested(0.01)
    seen.answered(0.1, 1_000)
    # A client with several requests in flight sent this one before it read the response.
    seen.requested(0.11)
    seen.requested(1.1)
    found = record.figures()
    assert (found.requests, found.throttled, found.throttle_ms) == (4, 1, 1_000)
    assert (found.judged, found.broken, found.early, found.honors) == (1, 0, 0, Honors.YES)


def test_requests_during_a_throttle_time_wait_for_its_end() -> None:
    record = BehaviorRecord()
    seen = record.connection()
    seen.answered(0.0, 1_000)
    seen.requested(0.25)
    seen.requested(0.5)
    seen.requested(1.5)
    found = record.figures()
    assert (found.judged, found.broken, found.early) == (1, 1, 2)
    assert (found.waited_ms, found.longest_wait_ms, found.honors) == (1_250, 750, Honors.NO)


def test_a_client_with_one_request_in_flight_sends_the_next_one_after_the_response() -> None:
    record = BehaviorRecord()
    seen = record.connection()
    seen.requested(0.0)
    seen.answered(0.1, 1_000)
    seen.requested(0.101)
    seen.answered(1.2, 1_000)
    seen.closed()
    found = record.figures()
    assert (found.judged, found.broken, found.longest_wait_ms, found.honors) == (1, 1, 999, Honors.NO)


def test_a_broken_throttle_time_counts_also_if_the_next_one_or_the_end_follows() -> None:
    record = BehaviorRecord()
    seen = record.connection()
    for start in (0.0, 1.0, 2.0):
        seen.answered(start, 1_000)
        seen.requested(start + 0.5)
    seen.closed()
    found = record.figures()
    assert (found.judged, found.broken, found.early) == (3, 3, 3)


def test_one_late_request_among_many_throttle_times_is_allowed() -> None:
    record = BehaviorRecord()
    seen = record.connection()
    for number in range(20):
        seen.answered(float(number), 500)
        seen.requested(number + (0.1 if number == 7 else 0.6))
    seen.closed()
    found = record.figures()
    assert (found.judged, found.broken, found.honors) == (20, 1, Honors.YES)


def test_without_a_later_request_there_is_no_verdict() -> None:
    record = BehaviorRecord()
    seen, other = record.connection(), record.connection()
    seen.answered(0.0, 1_000)
    # A throttle time applies only to its own connection.
    other.requested(0.5)
    # Too short to be judged.
    other.answered(0.6, 20)
    other.requested(2.0)
    seen.closed()
    found = record.figures()
    assert (found.throttled, found.judged, found.honors) == (2, 0, Honors.UNKNOWN)
