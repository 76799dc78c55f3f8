"""Converts the course of a run to JSON values and back."""

from __future__ import annotations

from typing import Any

from kquota.reassign.course import EMPTY, MOST_CHANGES, MOST_READINGS, BrokerCourse, Course, CourseReading, RateChange
from kquota.reassign.progress import Progress
from kquota.stores.state import checked_values as values
from kquota.terms import BrokerId


def written(course: Course) -> dict[str, Any]:
    """Return the course as JSON values."""
    return {
        "expected_seconds": course.expected,
        "verdict": course.verdict,
        "brokers": [
            {
                "broker": one.broker,
                "expected_bytes": one.expected_bytes,
                "expected_seconds": one.expected,
                "copied": one.copied,
                "ended": values.when(one.ended),
            }
            for one in course.brokers
        ],
        "readings": [[values.when(one.at), one.copied, one.left] for one in course.readings],
        "changes": [
            {
                "at": values.when(one.at),
                "from": one.before,
                "to": one.rate,
                "by": one.by,
                "reason": one.reason,
                **({"settings": [values.setting_fields(setting) for setting in one.settings]} if one.settings else {}),
            }
            for one in course.changes
        ],
        **({"changes_dropped": course.changes_dropped} if course.changes_dropped else {}),
    }


def course_of(document: Any) -> Course:
    """Return the course. An invalid document gives an empty course, so that you can still resume or undo the run."""
    try:
        return _valid(document)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return EMPTY


def _valid(document: Any) -> Course:
    readings, changes, verdict = document["readings"], document["changes"], document["verdict"]
    if len(readings) > MOST_READINGS or len(changes) > MOST_CHANGES:
        raise ValueError("too many readings or changes")
    return Course(
        expected=values.seconds(document["expected_seconds"]),
        verdict=None if verdict is None else Progress(verdict).value,
        brokers=tuple(
            BrokerCourse(
                broker=BrokerId(values.number(one["broker"])),
                expected_bytes=values.count(one["expected_bytes"]),
                expected=values.seconds(one["expected_seconds"]),
                copied=values.count(one["copied"]),
                ended=values.optional_moment(one["ended"]),
            )
            for one in document["brokers"]
        ),
        readings=tuple(
            CourseReading(at=values.moment(at), copied=values.count(copied), left=values.count(left))
            for at, copied, left in readings
        ),
        changes=tuple(
            RateChange(
                at=values.moment(one["at"]),
                before=values.rate(one["from"]),
                rate=values.rate(one["to"]),
                by=values.optional_text(one["by"]),
                reason=values.optional_text(one["reason"]),
                settings=tuple(values.setting_of(setting) for setting in one.get("settings", ())),
            )
            for one in changes
        ),
        changes_dropped=values.count(document.get("changes_dropped")) or 0,
    )
