"""The restore rule: the throttle values that a run takes, restores at its end, or leaves unchanged. Pure functions.

| word | meaning |
|---|---|
| take | record the values that a run is about to set (`ours`), and the last value of other clients (`prior`) |
| hold | have taken and not yet restored. Several open runs can hold the same value |
| restore | set the value of other clients again, unless another open run still holds the run's value |
| pass on | leave a rate to another run that holds it, together with `prior` |
| remove | delete list entries of a move that no run has recorded. Their prior value is unknown |
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kquota.errors import NextStep, Refused
from kquota.reassign.moves import Move, Replicas, list_entries
from kquota.reassign.run import Run, Taken
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries, merge, replica, without
from kquota.terms import EVERY_REPLICA, FOLLOWER_REPLICAS, LEADER_REPLICAS, THROTTLE_LISTS, BrokerId, TopicPartition


def may_stay_set(error: Refused, runs: Iterable[Run]) -> Refused:
    """Return the error of a command that could not restore these open runs, and name those that hold a throttle."""
    held = [run.id for run in runs if run.held]
    if not held:
        return error
    may = f"The throttle of run {held[0]} may still be set"
    if len(held) > 1:
        may = f"The throttles of these runs may still be set: {', '.join(held)}"
    then = "). After you have solved the problem, run the same command again"
    return Refused(error, f". {may} (", NextStep.SHOW_THROTTLES, then)


def take(
    setting: Setting, now: str | None, wanted: tuple[str, ...], mine: Taken | None, others: Sequence[Taken]
) -> Taken:
    """Return the values that a run takes for one setting. A run does not take values that another client has set.

    `mine` are the values that the run took before, or None, and `others` are the values that other open runs
    hold, oldest first. The run also takes an entry or a rate that one of these runs set, so that the last of the runs
    restores it.

    If a run has set the current value, `prior` must not contain what the run set. For a rate, and for a list with `*`,
    `prior` is then the `prior` of that run. For any other list, it is the current list without the entries of the runs.
    """
    present = set(entries(now)) if setting.is_list else {now}
    held = {value for other in others for value in other.ours}
    own = mine.ours if mine else ()
    if EVERY_REPLICA in present and setting.is_list:
        # The last run that needs the `*` of another run removes it. The `*` of another client stays.
        added: tuple[str, ...] = (EVERY_REPLICA,) if EVERY_REPLICA in held else ()
    else:
        added = tuple(value for value in wanted if value not in present or value in held)
    every = (*((mine,) if mine else ()), *others)
    # A kquota that died while unsetting a list may have left the list empty. An empty list is not a prior value.
    holders = [t for t in every if present & set(t.ours) or (now == "" and t.ours)] if setting.is_list else []
    prior = holders[0].prior if holders else _of_other_clients(now, every)
    if holders and EVERY_REPLICA not in present:
        # Other clients may have added or removed entries since the holder took the list.
        prior = without(now, held.union(own), prior)
    return Taken(setting=setting, prior=prior, ours=tuple(dict.fromkeys((*own, *added))))


def _of_other_clients(value: str | None, every: Sequence[Taken]) -> str | None:
    """Return the value of other clients that was set before the runs in `every` set `value`. Return `value` if none of
    these runs has set it.

    The prior value of such a run can be the value of another one of them, if both began without a common record, and
    the record was shared later. If the prior values form a circle, because a later run has set the original value
    again, the result is the prior value of the circle's first run in `every`. The oldest run knows the original value.
    """
    left, setters = list(every), list[Taken]()
    while (setter := next((taken for taken in left if value in taken.ours), None)) is not None:
        left.remove(setter)
        setters.append(setter)
        value = setter.prior
    if any(value in taken.ours for taken in setters):
        return next(taken.prior for taken in every if taken in setters)
    return value


def taking(
    run: Run,
    wanted: Mapping[Setting, tuple[str, ...]],
    now: Mapping[Setting, str | None],
    others: Sequence[Run],
) -> Run:
    """Return the run to record before `wanted` replaces `now`. `others` are the other open runs, oldest first."""
    fresh = {
        setting: take(setting, now[setting], values, run.taken.get(setting), held_by(others, setting))
        for setting, values in wanted.items()
    }
    return replace(run, taken=dict(sorted({**run.taken, **fresh}.items())))


def others_after(run: Run, changes: Sequence[Change], others: Sequence[Run]) -> tuple[Run, ...]:
    """Return the other open runs as they are after `changes` of `run`.

    `changes` may replace a value that another client wrote over the value of these runs. That client's value becomes
    the prior value of the setting, because the last of the runs must restore it. For a list, this applies only if the
    client removed the `*` of a run.
    """
    found = []
    for other in others:
        held = other.held
        replaced = {
            change.setting: replace(held[change.setting], prior=run.taken[change.setting].prior)
            for change in changes
            if change.setting in held
            and _replaces(change, held_by((run, *others), change.setting), held[change.setting])
        }
        found.append(replace(other, taken={**other.taken, **replaced}))
    return tuple(found)


def _replaces(change: Change, every: Sequence[Taken], mine: Taken) -> bool:
    if not change.setting.is_list:
        return not any(change.before in taken.ours for taken in every)
    return EVERY_REPLICA in mine.ours and EVERY_REPLICA not in entries(change.before)


def restored_value(taken: Taken, now: str | None, others: Sequence[Taken]) -> str | None:
    """Return the value to write when a run ends. It equals `now` if nothing needs to change.

    A list loses the run's entries that no other open run holds. A list with the run's `*` becomes `prior` with
    the entries of other open runs, unless one of these runs holds the `*`. A rate becomes `prior` if it is still
    a rate that the run set. A rate that another client has changed, or that another open run holds, does not
    change.
    """
    held = tuple(dict.fromkeys(value for other in others for value in other.ours))
    if not taken.setting.is_list:
        return taken.prior if now in taken.ours and not held else now
    if EVERY_REPLICA in taken.ours and EVERY_REPLICA in entries(now):
        if EVERY_REPLICA in held:
            return now
        return merge(taken.prior, held, str(taken.setting)) if held else taken.prior
    removed = set(taken.ours).difference(held)
    touched = removed.intersection(entries(now)) or (now == "" and taken.ours)
    return without(now, removed, taken.prior) if touched else now


def restore_changes(run: Run, now: Mapping[Setting, str | None], others: Sequence[Run]) -> tuple[Change, ...]:
    """Return the changes that end the throttle of the run. Settings that could not be read are left out."""
    changes = (
        Change(setting=taken.setting, before=value, after=restored_value(taken, value, theirs))
        for taken, value, theirs in _readable(run, now, others)
    )
    return tuple(change for change in changes if change.before != change.after)


def repeat_changes(run: Run, now: Mapping[Setting, str | None], others: Sequence[Run]) -> tuple[Change, ...]:
    """Return the changes that write current values again, because a read cannot prove that the run's values are unset.

    The kquota that wrote the values of the run may have died before they became visible. A broker that is slow to
    replay the KRaft log still shows the earlier values (20 s on a busy machine).
    """
    return tuple(
        Change(setting=taken.setting, before=value, after=value)
        for taken, value, theirs in _readable(run, now, others)
        if _may_be_unseen(taken, value, theirs) and restored_value(taken, value, theirs) == value
    )


def _may_be_unseen(taken: Taken, now: str | None, others: Sequence[Taken]) -> bool:
    """Return whether values that only this run set may become visible after the reading `now`.

    A list then shows none of these entries and no `*`. A rate then still has its prior value.
    """
    if not taken.setting.is_list:
        return not others and now == taken.prior and now not in taken.ours
    only = set(taken.ours) - {entry for other in others for entry in other.ours}
    return bool(only) and only.isdisjoint(entries(now)) and EVERY_REPLICA not in entries(now)


def assumed_values(run: Run) -> dict[Setting, str | None]:
    """Return the value that each rate of `run` probably has. kquota needs these values for dead brokers, whose rates
    cannot be read.

    The value is the run's last one that differs from `prior`, or `prior` if there is none. A later value that equals
    `prior` does not count, because the broker may have died before this value was written.
    """
    return {
        setting: next((value for value in reversed(taken.ours) if value != taken.prior), taken.prior)
        for setting, taken in run.taken.items()
    }


def _readable(
    run: Run, now: Mapping[Setting, str | None], others: Sequence[Run]
) -> Iterator[tuple[Taken, str | None, tuple[Taken, ...]]]:
    return ((taken, now[s], held_by(others, s)) for s, taken in run.held.items() if s in now)


def passed_on(taken: Taken, now: str | None, other: Taken, every: Sequence[Taken]) -> Taken:
    """Return the record of a setting in an open run, after another run that also set it has ended.

    `taken` is the record of the ended run, and `other` is the previous record of the open run. `every` has these two
    and the records of all other open runs, oldest first.

    For a list with `*`, the prior value loses the entries of the ended run, which it has only if both runs began
    without a common record. Any other list does not change.

    For a rate, the result takes `prior` from `taken` if only the ended run has set the current value `now`. Otherwise,
    it keeps the `prior` of `other`. Its `ours` always has the values of both runs, because `now` may be stale and miss
    the last write.
    """
    if taken.setting.is_list:
        mixed = EVERY_REPLICA in other.ours and not {*taken.ours}.isdisjoint(entries(other.prior))
        return replace(other, prior=without(other.prior, taken.ours, taken.prior)) if mixed else other
    prior = taken.prior if now in taken.ours and now not in other.ours else other.prior
    prior = _of_other_clients(prior, every)
    return replace(other, prior=prior, ours=tuple(dict.fromkeys((*other.ours, *taken.ours))))


def passing_on(run: Run, now: Mapping[Setting, str | None], other: Run, others: Sequence[Run]) -> Run:
    """Return the open run `other` after it has taken over the rates that it shares with the ended `run`. `others` are
    all open runs except `run`.

    A rate that is missing from `now` is not taken over.
    """
    every = sorted((run, *others), key=lambda each: (each.begun, each.id))
    shared = {
        setting: passed_on(run.taken[setting], now[setting], taken, held_by(every, setting))
        for setting, taken in other.held.items()
        if setting in run.taken and setting in now
    }
    return replace(other, taken={**other.taken, **shared})


def held_by(runs: Sequence[Run], setting: Setting) -> tuple[Taken, ...]:
    """Return the values that each of `runs` still has to restore for one setting, in the order of `runs`. Runs without
    such values are left out.
    """
    return tuple(run.taken[setting] for run in runs if setting in run.taken and run.taken[setting].ours)


def part_of(run: Run, ended: Collection[TopicPartition]) -> Run:
    """Return the run with only its list entries of partitions that have `ended`. These entries can be removed early.

    Rates, and an entry for a whole topic, are needed until the last partition has ended.
    """
    taken = {}
    for setting, mine in run.taken.items():
        if setting.is_list:
            ours = tuple(e for e in mine.ours if (named := replica(setting, e)) is not None and named[0] in ended)
            if ours:
                taken[setting] = replace(mine, ours=ours)
    return replace(run, taken=taken)


def without_values(run: Run, values: Mapping[Setting, Taken], pending: Collection[Setting] = ()) -> Run:
    """Return the run without `values`, except those of `pending` settings, which kquota must still restore."""
    taken = dict(run.taken)
    for setting in values.keys() - pending:
        ours = tuple(value for value in taken[setting].ours if value not in values[setting].ours)
        taken[setting] = replace(taken[setting], ours=ours)
    return replace(run, taken=taken)


def unchanged_rates(run: Run, now: Mapping[Setting, str | None], others: Sequence[Run]) -> tuple[str, ...]:
    """Return a note for each rate that `restored_value` leaves unchanged although it is not `prior`, because another
    client has changed it. A rate that another open run holds has no note.
    """
    return tuple(
        f"{taken.setting} is now {'unset' if value is None else value}, because another client changed the rate "
        f"after run {run.id} set it. kquota leaves the rate unchanged"
        for taken, value, theirs in _readable(run, now, others)
        if not (taken.setting.is_list or theirs)
        and value != taken.prior
        and restored_value(taken, value, theirs) == value
    )


def held_on(run: Run, brokers: Collection[BrokerId]) -> dict[Setting, Taken]:
    """Return the settings on these brokers that the run still has to restore."""
    names = {str(broker) for broker in brokers}
    return {s: taken for s, taken in run.held.items() if s.kind == "broker" and s.name in names}


def without_topics(run: Run, topics: Collection[str]) -> Run:
    """Return the run without settings of `topics`, which were deleted.

    A new topic of the same name does not belong to the run.
    """
    taken = {s: mine for s, mine in run.taken.items() if s.kind != "topic" or s.name not in topics}
    return replace(run, taken=taken)


def unrecorded_removals(
    done: Mapping[TopicPartition, Replicas],
    now: Mapping[Setting, str | None],
    cancelled: Mapping[TopicPartition, Move],
) -> tuple[Change, ...]:
    """Return the changes that remove list entries which can only have been set for the given moves of one plan.

    A move of partition p from replicas S to T leaves entries `p:b` (KIP-73). The leader list has one for every b of S,
    and the follower list has one for every b of T - S. `done` has T for each partition whose move ended as planned. The
    entries of p belong to the move if followers and leaders are disjoint and not empty, the followers are in T, and all
    other brokers of T are leaders. A throttle of whole topics has `*` or the same replicas on both lists, so it never
    matches.

    For a `cancelled` move, S is also known, and the entries must be exactly those of this move. Other entries stay set,
    because they may belong to a move that is about to be submitted. A list that becomes empty is unset, because its
    previous value is unknown.
    """
    changes: list[Change] = []
    for topic in sorted({name.topic for name in (*done, *cancelled)}):
        lists = {setting: now.get(setting) for setting in (Setting.of_topic(topic, key) for key in THROTTLE_LISTS)}
        if any(EVERY_REPLICA in entries(text) for text in lists.values()):
            continue
        own = _entries_of_moves(done, cancelled, lists)
        changes += [
            Change(setting=setting, before=text, after=without(text, own, None))
            for setting, text in lists.items()
            if not own.isdisjoint(entries(text))
        ]
    return tuple(changes)


def _entries_of_moves(
    done: Mapping[TopicPartition, Replicas],
    cancelled: Mapping[TopicPartition, Move],
    lists: Mapping[Setting, str | None],
) -> set[str]:
    by_partition: dict[TopicPartition, dict[str, set[str]]] = {}
    for setting, text in lists.items():
        for entry in entries(text):
            named = replica(setting, entry)
            if named is not None and (named[0] in done or named[0] in cancelled):
                found = by_partition.setdefault(named[0], {LEADER_REPLICAS: set(), FOLLOWER_REPLICAS: set()})
                found[setting.key].add(entry)
    own: set[str] = set()
    for name, found in by_partition.items():
        leaders, followers = found[LEADER_REPLICAS], found[FOLLOWER_REPLICAS]
        if move := cancelled.get(name):
            sure = found == {setting.key: set(needed) for setting, needed in list_entries([move]).items()}
        else:
            target = {f"{name.partition}:{broker}" for broker in done[name]}
            sure = not leaders & followers and followers <= target and target - followers <= leaders
        if followers and leaders and sure:
            own |= leaders | followers
    return own
