"""SCRAM credentials through the Admin API (KIP-554), since Kafka 2.7."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafka.protocol.admin.users import AlterUserScramCredentialsRequest

from kquota.errors import Incomplete, KquotaError, NextStep, Refused, StepFor, Unknown, Unreachable
from kquota.quota.scram import MECHANISMS, ScramChange
from kquota.stores.admin.connection import ALTER, Wire, advice_on_rights, kafka_error, was_sent
from kquota.stores.admin.controllers import must_be_active
from kquota.stores.admin.running import ask_controller
from kquota.terms import MAYBE_WRITTEN, RESOURCE_NOT_FOUND


def alter(wire: Wire, change: ScramChange) -> tuple[str, ...]:
    """Set and delete the credentials. Return the mechanisms in `change.delete` that the user did not have.

    Sends one request for each credential, because KRaft accepts only one credential of a user in a request. Raises
    Incomplete if a request fails after another credential was written. Otherwise raises Unreachable without an answer
    or an active controller, Unknown after an error that does not show whether the credential was written, and Refused
    after any other error.
    """
    must_be_active(wire)
    done: list[str] = []
    absent: list[str] = []
    for mechanism, request in _requests(change):
        try:
            written = _was_set(_answered(wire, request, change.user), change.user, mechanism)
        except KquotaError as error:
            if done:
                raise Incomplete((error, f". Already written: {', '.join(done)}"), done, [mechanism]) from error
            raise
        (done if written else absent).append(mechanism)
    return tuple(absent)


def _answered(wire: Wire, request: Any, user: str) -> Any:
    try:
        return ask_controller(wire, request, results=lambda answer: answer.results)
    except Unreachable as error:
        if not was_sent(request, error):
            raise
        step = StepFor(NextStep.SHOW_USER, user)
        raise Unreachable(error, ". The change may have been written. Check with ", step) from error


def _requests(change: ScramChange) -> Iterator[tuple[str, Any]]:
    """Yield the request for each mechanism. New credentials come first, so that the user can log in at any time."""
    request = AlterUserScramCredentialsRequest
    for keys in change.add:
        upsertion = request.ScramCredentialUpsertion(
            name=change.user,
            mechanism=MECHANISMS[keys.mechanism].code,
            iterations=keys.iterations,
            salt=keys.salt,
            salted_password=keys.salted_password,
        )
        yield keys.mechanism, request(deletions=[], upsertions=[upsertion])
    for mechanism in change.delete:
        deletion = request.ScramCredentialDeletion(name=change.user, mechanism=MECHANISMS[mechanism].code)
        yield mechanism, request(deletions=[deletion], upsertions=[])


def _was_set(answer: Any, user: str, mechanism: str) -> bool:
    for result in answer.results:
        if result.error_code == RESOURCE_NOT_FOUND:
            return False
        if result.error_code:
            words = kafka_error(result.error_code, result.error_message)
            words += advice_on_rights(result.error_code, ALTER)
            kind = Unknown if result.error_code in MAYBE_WRITTEN else Refused
            raise kind(f"{mechanism} of user {user!r}: the broker answered {words}")
    return True
