"""Consumer groups whose lag grows: a signal that copies take disk or network time from consumers.

A group commits its offsets only now and then, so its lag grows until the next commit even if the group keeps up. The
lag at a commit is known only within bounds, so only growth that these bounds prove counts. The group must also have
kept up before, with about as many records per second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from kquota.terms import TopicPartition

READ_SECONDS: Final = 10.0
"""The time between two readings of the offsets."""
LEAST_SECONDS: Final = 30.0
"""Growth over a shorter time does not count."""
SHOWN_SECONDS: Final = 75.0
"""The time in which kquota certainly finds a group that leaves half of the new records unread."""
LONGEST_SECONDS: Final = 180.0
"""A commit older than this no longer counts."""
LEAST_SHARE: Final = 0.1
"""The lag grows if at least this share of the new records is certainly unread. A group that leaves a fifth unread is
found after about two minutes, because the bounds of its lag become less important with time.
"""
LEAST_RECORDS: Final = 100
"""Growth by fewer records does not count."""
FASTER: Final = 1.1
"""Growth does not count if records arrive at more than this multiple of the rate at which the group has kept up."""
LATE_FACTOR: Final = 1.5
LEAST_LATE_SECONDS: Final = 22.0
"""A commit is late if the time since the previous commit is more than `LEAST_LATE_SECONDS` and more than `LATE_FACTOR`
times the time between the two previous commits. The group has then paused and catches up, so its lag is not compared
with the lag from before the pause. If the last reading is more than `READ_SECONDS` ago, `LEAST_LATE_SECONDS` becomes
longer in proportion.
"""


class GroupOffsets(NamedTuple):
    """The committed offset of a group in a partition, and the last stable offset of the partition (KIP-98)."""

    committed: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsReading:
    """The offsets of consumer groups. `at` is the time of the reading in seconds of a monotonic clock.

    `unread` is the number of known groups whose offsets are missing, for example because this user may not read them.
    `unlisted` is the number of brokers that have not listed their groups.
    """

    at: float
    groups: Mapping[str, Mapping[TopicPartition, GroupOffsets]]
    unread: int = 0
    unlisted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowingLag:
    """The certain growth of a group's lag in offsets, and the seconds in which it grew."""

    group: str
    records: int
    seconds: float


class _Commit(NamedTuple):
    """A commit that a reading has found. The lag at the commit was from `least` to `most`. `end` is the end of the
    partition in this reading.
    """

    at: float
    least: int
    most: int
    end: int


class _GroupPartition(NamedTuple):
    """The last offsets of a group in a partition, and its commits. `rhythm` is the time between the last two commits,
    in seconds.
    """

    at: float
    offsets: GroupOffsets
    commits: tuple[_Commit, ...] = ()
    rhythm: float = 0.0


_GroupPartitions: TypeAlias = Mapping[TopicPartition, _GroupPartition]


class _Course(NamedTuple):
    """The sums over the partitions of a group, from the first to the last commit of each partition."""

    seconds: float
    """The longest time from the first to the last commit of a partition."""
    written: int
    """The new records."""
    rate: float
    """The new records per second."""
    latest_rate: float
    """The new records per second in about the last `LEAST_SECONDS`."""
    least: int
    """The lower bound of the growth of the lag."""
    most: int
    """The upper bound of the growth of the lag."""
    latest: int
    """The probable growth of the lag in about the last `LEAST_SECONDS`."""

    @property
    def has_grown(self) -> bool:
        needed = max(LEAST_RECORDS, LEAST_SHARE * self.written, READ_SECONDS * self.rate)
        return self.seconds >= LEAST_SECONDS and self.least >= needed

    @property
    def still_grows(self) -> bool:
        return self.latest > LEAST_SHARE * LEAST_SECONDS * self.latest_rate

    @property
    def keeps_up(self) -> bool:
        return self.seconds >= LEAST_SECONDS and self.most <= LEAST_SHARE * self.written


class _Kept(NamedTuple):
    """The highest rate, in records per second, at which a group has kept up. If `certain` is False, kquota only assumes
    that the group has kept up, because the throttle was the lowest one.
    """

    rate: float = 0.0
    certain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLags:
    """The commits of consumer groups since the last decrease of the throttle, and the rates at which the groups kept
    up.
    """

    at: float | None = None
    """The time of the last reading since this decrease, in seconds of a monotonic clock. None without such a reading.
    """
    partitions: Mapping[str, _GroupPartitions] = field(default_factory=dict)
    """The partitions of each group, with their commits."""
    kept: Mapping[str, _Kept] = field(default_factory=dict)
    """The highest rate at which each group has kept up."""

    def forgotten(self) -> GroupLags:
        """Return the state after a decrease of the throttle. The earlier commits are left out, because they do not show
        the effect of the decrease.
        """
        return GroupLags(kept=self.kept)

    def after(self, reading: OffsetsReading, *, lowest: bool) -> tuple[GroupLags, tuple[GrowingLag, ...]]:
        """Return the state after a reading, and the lags that grow, largest first.

        `lowest` means that the throttle is the lowest one. kquota then assumes that a group keeps up, unless its lag
        has certainly grown. A group that is returned under the lowest throttle is too slow whatever the throttle is.
        Its lag counts again only after the group has kept up.
        """
        late = 0.0 if self.at is None else LEAST_LATE_SECONDS / READ_SECONDS * (reading.at - self.at)
        partitions: dict[str, _GroupPartitions] = {}
        kept = dict(self.kept)
        growing = []
        for group in sorted(self.partitions.keys() | reading.groups.keys()):
            known, now = self.partitions.get(group, {}), reading.groups.get(group, {})
            unseen = {
                one: was for one, was in known.items() if one not in now and reading.at - was.at <= LONGEST_SECONDS
            }
            seen = {one: _after(known.get(one), offsets, reading.at, late) for one, offsets in now.items()}
            partitions[group] = {**unseen, **seen}
            course = _course(partitions[group], reading.at)
            grown = course is not None and course.has_grown
            before = kept.get(group, _Kept())
            if course is not None and grown and course.still_grows:
                if max(course.rate, course.latest_rate) <= FASTER * before.rate:
                    growing.append(GrowingLag(group=group, records=course.least, seconds=course.seconds))
                    if lowest:
                        kept[group] = _Kept(certain=True)
            elif course is not None and course.keeps_up:
                kept[group] = _Kept(max(course.rate, before.rate if before.certain else 0.0), certain=True)
            elif lowest and not grown and not before.certain:
                kept[group] = _Kept(max(before.rate, _written(known, now, reading.at)))
        state = GroupLags(
            at=reading.at, partitions={group: those for group, those in partitions.items() if those}, kept=kept
        )
        return state, tuple(sorted(growing, key=lambda one: (-one.records, one.group)))


def _after(was: _GroupPartition | None, now: GroupOffsets, at: float, late: float) -> _GroupPartition:
    """Return the state of a partition after a reading. If offsets have become lower, or if the new commit is late, the
    earlier commits do not count.
    """
    if was is None or now.committed < was.offsets.committed or now.end < was.offsets.end:
        return _GroupPartition(at, now)
    commits = tuple(one for one in was.commits if at - one.at <= LONGEST_SECONDS)
    if now.committed == was.offsets.committed:
        return was._replace(at=at, offsets=now, commits=commits)
    rhythm = at - was.commits[-1].at if was.commits else 0.0
    if rhythm > max(LEAST_LATE_SECONDS, late, LATE_FACTOR * was.rhythm):
        commits = ()
    found = _Commit(at, max(0, was.offsets.end - now.committed), max(0, now.end - now.committed), now.end)
    return _GroupPartition(at, now, (*commits, found), rhythm)


def _written(known: _GroupPartitions, now: Mapping[TopicPartition, GroupOffsets], at: float) -> float:
    """Return the new records per second since the previous reading, in the partitions with a commit since then."""
    both = [(was, now[one]) for one, was in known.items() if one in now and now[one].committed > was.offsets.committed]
    return sum((found.end - was.offsets.end) / (at - was.at) for was, found in both)


def _course(partitions: _GroupPartitions, at: float) -> _Course | None:
    """Return the sums over the partitions of a group that have at least two commits. The result is None if the reading
    at the time `at` has no commit in any of these partitions. Partitions whose commits cover less than `LEAST_SECONDS`
    count only if there are no others.
    """
    repeated = [one.commits for one in partitions.values() if len(one.commits) > 1]
    if not any(commits[-1].at == at for commits in repeated):
        return None
    counted = [commits for commits in repeated if commits[-1].at - commits[0].at >= LEAST_SECONDS] or repeated
    courses = [(commits[0], _before(commits), commits[-1]) for commits in counted]
    return _Course(
        seconds=max(last.at - first.at for first, _, last in courses),
        written=sum(last.end - first.end for first, _, last in courses),
        rate=sum((last.end - first.end) / (last.at - first.at) for first, _, last in courses),
        latest_rate=sum((last.end - before.end) / (last.at - before.at) for _, before, last in courses),
        least=sum(last.least - first.most for first, _, last in courses),
        most=sum(last.most - first.least for first, _, last in courses),
        latest=sum(last.most - before.most for _, before, last in courses),
    )


def _before(commits: tuple[_Commit, ...]) -> _Commit:
    return next((one for one in reversed(commits) if commits[-1].at - one.at >= LEAST_SECONDS), commits[0])
