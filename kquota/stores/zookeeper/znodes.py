"""A ZooKeeper session for the znodes of Kafka: versioned configs and their notifications.

Only this module and `session` import kazoo.
"""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Self, TypeAlias

from kazoo import exceptions as kazoo_errors
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KeeperState
from kazoo.security import ACL, OPEN_ACL_UNSAFE

from kquota.errors import Conflict, Refused, Unreachable
from kquota.interrupt import deferred
from kquota.stores.login.arguments import Access, ArgumentNames
from kquota.stores.login.listening import must_listen
from kquota.stores.zookeeper import session
from kquota.stores.zookeeper.znode import (
    LIVE_BROKERS,
    NOTIFICATIONS,
    Check,
    Create,
    Delete,
    Node,
    SetData,
    ZnodeOperation,
    above,
    config_in,
    config_written,
    emptied,
    json_in,
    notification,
    parents_of,
    size,
)

CONNECT_SECONDS: Final = 10.0
LARGEST_TRANSACTION: Final = 1_040_000
"""The maximum size of a transaction in bytes. ZooKeeper closes the connection after a packet of more than
`jute.maxbuffer`, by default 1,048,575 bytes.
"""
_MERGE_ATTEMPTS: Final = 20
_SHORTEST_PAUSE: Final = 0.002
_LONGEST_PAUSE: Final = 0.2
_CLUSTER_ID: Final = "/cluster/id"
_CONFLICTS: Final = (
    kazoo_errors.BadVersionError,
    kazoo_errors.NodeExistsError,
    kazoo_errors.NoNodeError,
    kazoo_errors.NotEmptyError,
)
_LOST: Final = (
    kazoo_errors.ConnectionLoss,
    kazoo_errors.SessionExpiredError,
    kazoo_errors.ConnectionClosedError,
    kazoo_errors.OperationTimeoutError,
    KazooTimeoutError,
)

ConfigEdit: TypeAlias = Callable[[Mapping[str, str]], Mapping[str, str]]


class Znodes:
    """An open ZooKeeper session for the znodes of a Kafka cluster, as a context manager.

    Each method that reads raises Unreachable if the session was lost or no answer comes within `CONNECT_SECONDS`, and
    Refused if this client has no access.
    """

    def __init__(self, connect: str, access: Access | None = None, deadline: float = CONNECT_SECONDS) -> None:
        """Connect to `host:port[,host:port][/chroot]`, and read `cluster_id` (None if ZooKeeper does not have it).

        Raises Unreachable if no server accepts a connection, or if no session starts, each within `deadline` seconds.
        Raises Invalid for a malformed address or an unusable key store or trust store. Raises Refused if this is not
        the ZooKeeper of a Kafka cluster, if the cluster is on KRaft or migrating to it, or if the login is refused.
        """
        # Silence the logger, because kazoo logs every request at level DEBUG, including digest passwords.
        logging.getLogger("kazoo").setLevel(logging.CRITICAL + 1)
        self._connect = connect
        self._access = access or Access()
        self._servers = self._listening(deadline)
        _, slash, chroot = connect.partition("/")
        self._client = session.started(f"{','.join(self._servers)}{slash}{chroot}", self._access, deadline)
        try:
            self._must_log_in()
            self._must_be_kafka()
        except BaseException:
            self.close()
            raise

    @property
    def names(self) -> ArgumentNames:
        return self._access.names

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session."""
        self._client.stop()
        self._client.close()

    def read(self, path: str) -> Node | None:
        """Return a znode, or None if it does not exist."""
        return self.read_all([path])[path]

    def read_all(self, paths: Iterable[str]) -> dict[str, Node | None]:
        """Return znodes by path, with None for a missing znode. Sends all requests before it waits for an answer."""
        with deferred():
            sent = {path: self._client.get_async(path) for path in paths}
        return {path: self._node(path, answer) for path, answer in sent.items()}

    def children(self, path: str) -> list[str]:
        """Return the children of a znode, sorted, or an empty list if the znode does not exist."""
        return self.children_all([path])[path]

    def children_all(self, paths: Iterable[str]) -> dict[str, list[str]]:
        """Return the sorted children of each znode, with the znode's path as the key. A znode that does not exist has
        none. Sends all requests before it waits for an answer.
        """
        with deferred():
            sent = {path: self._client.get_children_async(path) for path in paths}
        return {path: sorted(self._answer(answer, path, [])) for path, answer in sent.items()}

    def alter_configs(
        self,
        edits: Mapping[str, ConfigEdit],
        largest: int | None = None,
        known: Mapping[str, Node] | None = None,
        also: Callable[[], Sequence[ZnodeOperation]] = tuple,
    ) -> None:
        """Change configs in one transaction, together with their notifications.

        `edits` has a function for each entity (`users/alice`), which returns the new config for the old one. After a
        conflict, everything is read and edited again. If no config changes, no transaction is sent. A quota znode that
        becomes empty is deleted, with its parents if they become empty, as brokers do (KAFKA-14285).

        `known` replaces the first reading: a znode that is missing in `known` counts as nonexistent. `known` may be
        stale, because the write checks the versions. `also` returns more operations for the transaction, and is called
        for each attempt.

        Raises Conflict if other clients keep writing first. Raises Refused for changes of more than about `largest`
        bytes, for a config that Kafka did not write, and for a user without access. Raises Unreachable if the session
        was lost. Also raises the errors of the functions in `edits` and of `also`.
        """
        for attempt in range(_MERGE_ATTEMPTS):
            writes = self._writes(edits, known if attempt == 0 else None)
            if not writes:
                return
            if largest is not None and size(writes) > largest:
                sizes = f"about {size(writes):,} bytes, at most {largest:,}"
                raise Refused(f"{', '.join(edits)}: the change is too large for one ZooKeeper transaction ({sizes})")
            with contextlib.suppress(*_CONFLICTS):
                self.commit([*also(), *writes])
                return
            # Without a random pause, the slower of two writers can lose every time.
            time.sleep(random.uniform(0, min(_LONGEST_PAUSE, _SHORTEST_PAUSE * 2**attempt)))
        raise Conflict(
            f"ZooKeeper at {self._connect}: other clients changed {', '.join(edits)} "
            f"during each of {_MERGE_ATTEMPTS} attempts. Run the same command again"
        )

    def committed(self, operations: Sequence[ZnodeOperation]) -> bool:
        """Commit the operations and return True. Return False, with nothing done, if the znodes are not in the expected
        state. Raises the other errors of `commit`.
        """
        try:
            self.commit(operations)
        except _CONFLICTS:
            return False
        return True

    def commit(self, operations: Sequence[ZnodeOperation]) -> None:
        """Commit the operations, all or none.

        If the znodes are not in the expected state, raises kazoo's BadVersionError, NodeExistsError, NoNodeError or
        NotEmptyError. Raises Conflict if ZooKeeper does not report why it rolled back. Raises Refused if this user may
        not write, or if the operations have more than `LARGEST_TRANSACTION` bytes. Raises Unreachable if the session
        was lost, because the outcome is then unknown.
        """
        if (found := size(operations)) > LARGEST_TRANSACTION:
            largest = max(operations, key=lambda operation: len(operation.data))
            raise Refused(
                f"{largest.path}: the change is too large for one ZooKeeper transaction (about {found:,} bytes, at "
                f"most {LARGEST_TRANSACTION:,}). It was not sent. Split the change, for example the plan of a move"
            )
        acls = self._acls_above(operation.path for operation in operations if isinstance(operation, Create))
        transaction = self._client.transaction()
        for operation in operations:
            match operation:
                case Create(path=path, data=data, sequence=sequence, ephemeral=ephemeral):
                    transaction.create(path, data, acl=acls[path], sequence=sequence, ephemeral=ephemeral)
                case SetData(path=path, data=data, version=version):
                    transaction.set_data(path, data, version)
                case Check(path=path, version=version):
                    transaction.check(path, version)
                case Delete(path=path, version=version):
                    transaction.delete(path, version)
        try:
            with deferred():
                answer = transaction.commit_async()
            results = answer.get(timeout=CONNECT_SECONDS)
        except _LOST as error:
            raise self._lost(error, "during a write. The write may have been made, and is safe to repeat") from error
        # The results include errors. An operation that was only rolled back has an error without a reason.
        errors = [result for result in results if isinstance(result, Exception)]
        for cause in errors:
            if not isinstance(cause, (kazoo_errors.RolledBackError, kazoo_errors.RuntimeInconsistency)):
                raise self._translated(cause)
        if errors:
            raise Conflict(f"ZooKeeper at {self._connect} rolled back a transaction without giving a reason. Try again")

    def _writes(self, edits: Mapping[str, ConfigEdit], known: Mapping[str, Node] | None) -> list[ZnodeOperation]:
        own = [f"/config/{entity_path}" for entity_path in edits]
        parents = {parent for entity_path in edits for parent in parents_of(entity_path)}
        found = self.read_all([*own, *parents]) if known is None else {p: known.get(p) for p in (*own, *parents)}
        nodes = {path: found[path] for path in own}
        missing = {path for path in parents if found[path] is None}
        try:
            befores = {entity_path: config_in(nodes[f"/config/{entity_path}"], entity_path) for entity_path in edits}
        except Refused as error:
            raise Refused(*error.args, ". Nothing was written") from error
        afters = {entity_path: dict(edit(befores[entity_path])) for entity_path, edit in edits.items()}
        changed = {name: after for name, after in afters.items() if after != befores[name]}
        deletions = emptied(changed, found)
        deleted = {deletion.path for deletion in deletions}
        writes: list[ZnodeOperation] = []
        for entity_path, after in changed.items():
            path = f"/config/{entity_path}"
            if path in deleted:
                writes.append(notification(entity_path))
                continue
            for parent in parents_of(entity_path):
                if parent in missing:
                    missing.discard(parent)
                    nodes[parent] = Node(data=b"", version=0)
                    writes.append(Create(path=parent, data=b""))
            missing.discard(path)
            writes += [config_written(path, nodes[path], after), notification(entity_path)]
        return [*writes, *deletions]

    def _acls_above(self, paths: Iterable[str]) -> dict[str, list[ACL]]:
        """Return, for each new znode, the ACL of its nearest existing ancestor, so that no new znode is more open.

        Kafka does not protect the root, even with `zookeeper.set.acl`. If everyone may change the ancestor, a new znode
        therefore gets the ACL of `NOTIFICATIONS`. This znode always exists, and has the ACL that Kafka gives its own
        znodes.
        """
        created = list(paths)
        found: dict[str, list[ACL]] = {}
        todo = {above(path) for path in created} - set(created)
        while todo:
            with deferred():
                sent = {path: self._client.get_acls_async(path or "/") for path in todo}
            answers = {path: self._answer(answer, path, None) for path, answer in sent.items()}
            found |= {path: list(answer[0]) for path, answer in answers.items() if answer is not None}
            todo = {above(path) for path in todo - found.keys()} - found.keys()
        kafkas: list[ACL] | None = None
        for path in created:
            parent = above(path)
            while parent not in found:
                parent = above(parent)
            found[path] = found[parent]
            if found[path] == OPEN_ACL_UNSAFE:
                kafkas = kafkas or self._acl_of_kafka()
                found[path] = kafkas
        return found

    def _acl_of_kafka(self) -> list[ACL]:
        with deferred():
            sent = self._client.get_acls_async(NOTIFICATIONS)
        return list(self._answer(sent, NOTIFICATIONS, (OPEN_ACL_UNSAFE,))[0])

    def _listening(self, deadline: float) -> list[str]:
        addresses, _, _ = self._connect.partition("/")
        return must_listen("ZooKeeper", addresses, self.names.zookeeper, self.names.command_config, deadline)

    def _must_log_in(self) -> None:
        """Raise Refused if ZooKeeper refuses the login, and Unreachable if the session is lost for another reason.

        Only the first request shows a refused login: ZooKeeper closes the connection, and kazoo then gives up.

        A server that does not support logins answers, but the login never ends, so a timeout also counts as refused. A
        server that stops also closes the connection, so kquota checks that the servers still accept connections.
        """
        if self._access.digest is None:
            return
        try:
            self._client.get_async("/").get(timeout=CONNECT_SECONDS)
        except (kazoo_errors.AuthFailedError, *_LOST) as error:
            gave_up = self._client.client_state in (KeeperState.AUTH_FAILED, KeeperState.CLOSED)
            refused = gave_up or isinstance(error, KazooTimeoutError)
            if not refused or self._listening(CONNECT_SECONDS) != self._servers:
                raise self._lost(error, "during the login") from error
            raise Refused(
                f"ZooKeeper at {self._connect}: the login was refused. Check the user and the password in the file "
                f"of {self.names.zk_sasl_config_file} or KAFKA_OPTS, and that this ZooKeeper accepts logins"
            ) from error
        except kazoo_errors.KazooException:
            return

    def _must_be_kafka(self) -> None:
        found = self.read_all((LIVE_BROKERS, NOTIFICATIONS, "/controller", "/migration", _CLUSTER_ID))
        if found[LIVE_BROKERS] is None or found[NOTIFICATIONS] is None:
            raise Refused(
                f"ZooKeeper at {self._connect} is not the ZooKeeper of a Kafka cluster "
                f"(it needs both {LIVE_BROKERS} and {NOTIFICATIONS}). "
                "Check the address and its chroot. Nothing was created"
            )
        epoch = json_in(found["/controller"]).get("kraftControllerEpoch", -1)
        if found["/migration"] is not None or (isinstance(epoch, int) and epoch >= 0):
            raise Refused(
                f"the cluster of ZooKeeper at {self._connect} is on KRaft or migrating to it. "
                f"Use {self.names.bootstrap_server}"
            )
        cluster_id = json_in(found[_CLUSTER_ID]).get("id")
        self.cluster_id: str | None = cluster_id if isinstance(cluster_id, str) else None

    def _node(self, path: str, answer: Any) -> Node | None:
        found = self._answer(answer, path, None)
        if found is None:
            return None
        return Node(data=found[0] or b"", version=found[1].version, children=found[1].numChildren, made=found[1].czxid)

    def _answer(self, answer: Any, path: str, absent: Any) -> Any:
        try:
            return answer.get(timeout=CONNECT_SECONDS)
        except kazoo_errors.NoNodeError:
            return absent
        except _LOST as error:
            raise self._lost(error, f"while reading {path}") from error
        except kazoo_errors.KazooException as error:
            raise self._translated(error) from error

    def _translated(self, error: Exception) -> Exception:
        if isinstance(error, kazoo_errors.NoAuthError):
            login = f"{self.names.zk_sasl_config_file} or {self.names.zk_tls_config_file}"
            has_login = self._access.tls is not None or self._access.digest is not None
            hint = ". Log in as a user with access" if has_login else f". Log in with {login}"
            why = "this client has no access (NoAuth). Nothing was written"
            return Refused(f"ZooKeeper at {self._connect}: {why}{hint}")
        if isinstance(error, kazoo_errors.AuthFailedError):
            return Refused(
                f"ZooKeeper at {self._connect}: the login was refused. Nothing was written. Check the user and the "
                f"password in the file of {self.names.zk_sasl_config_file} or KAFKA_OPTS"
            )
        return error

    def _lost(self, error: Exception, during: str) -> Unreachable:
        return Unreachable(
            f"ZooKeeper at {self._connect}: the session was lost ({type(error).__name__}) {during}. Check that "
            "ZooKeeper is running"
        )
