"""`kquota configs` for SCRAM credentials: the credentials to set, the password, and the write.

No error in this module repeats the text of a credential, because it may contain a password.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kquota import text_file
from kquota.cli import clock, world
from kquota.cli.configs.answer import AlteredQuotas, Unwritten
from kquota.cli.configs.entities import Named
from kquota.cli.configs.quotas import must_be_quotas, sentence
from kquota.cli.confirmation import has_terminal
from kquota.errors import Invalid
from kquota.quota import actions
from kquota.quota.entity import Entity
from kquota.quota.scram import (
    DEFAULT_ITERATIONS,
    MECHANISMS,
    ScramChange,
    must_be_a_password,
    must_be_iterations,
    scram_keys,
)
from kquota.settings.change import must_change
from kquota.terms import DEFAULT, USERS

_CREDENTIAL: Final = re.compile(r"(?:iterations=(?P<count>[0-9]{1,9}))?,?(?:password=(?P<password>.*))?", re.DOTALL)
_ADVICE: Final = "Give --password-file FILE (`-` for stdin), or run the command in a terminal"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramRequest:
    """The credentials that the options request."""

    iterations: Mapping[str, int]
    """The number of iterations of each credential to set, by mechanism."""
    delete: tuple[str, ...]
    """The mechanisms whose credentials are deleted."""
    password: str | None = field(repr=False)
    """The password in `--add-config-file`, or None."""


def request(entities: Named, add: Mapping[str, str], delete: tuple[str, ...], option: str) -> ScramRequest:
    """Return the credentials that the options request. `option` is the option that contains `add`.

    Raises Invalid, in Kafka's words where Kafka has them, for an unknown mechanism, for a key that users do not have,
    for quotas in the same command, and for the default user. Also raises Invalid for a mechanism that is both added and
    deleted, and for two different passwords. Also raises the errors of `credential`.
    """
    if others := [key for key in (*add, *delete) if key not in MECHANISMS]:
        unknown = [key for key in others if key.startswith("SCRAM-")]
        if unknown:
            raise Invalid(f"{', '.join(unknown)}: not supported by Kafka. Use {' or '.join(MECHANISMS)}")
        must_be_quotas([key for key in add if key in others], [USERS], option, "added")
        must_be_quotas([key for key in delete if key in others], [USERS], "--delete-config", "deleted")
        raise Invalid("Cannot alter both quota and SCRAM credential configs simultaneously for 'users'")
    must_change(add, delete)
    if entities[USERS] is DEFAULT:
        raise Invalid("The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials")
    found = {mechanism: credential(mechanism, text, option) for mechanism, text in add.items()}
    passwords = {password for _, password in found.values() if password is not None}
    if len(passwords) > 1:
        raise Invalid(f"{option}: two credentials have different passwords. Set each credential with its own command")
    iterations = {mechanism: count for mechanism, (count, _) in found.items()}
    return ScramRequest(iterations=iterations, delete=delete, password=next(iter(passwords), None))


def credential(mechanism: str, text: str, option: str) -> tuple[int, str | None]:
    """Return the iterations and the password in text such as `iterations=8192,password=…`.

    Without iterations in the text, the default of kafka-configs applies. Without a password, the second value is None.
    Raises Invalid, in Kafka's words where Kafka has them, for text that is not a credential, and for iterations that
    brokers refuse. `option` is the option that contains the text.
    """
    found = _CREDENTIAL.fullmatch(text)
    if found is None:
        # Only --add-config has brackets, because commas separate its pairs.
        value = "[iterations=8192]" if option == "--add-config" else "iterations=8192"
        raise Invalid(f"{option}: Invalid credential property {mechanism}: write {mechanism}={value}")
    iterations = int(found["count"]) if found["count"] else DEFAULT_ITERATIONS
    must_be_iterations(mechanism, iterations)
    return iterations, found["password"]


def alter(
    at: world.Where, entities: Named, asked: ScramRequest, password_file: Path | None, *, dry_run: bool
) -> AlteredQuotas | Unwritten:
    """Set and delete the credentials, and wait until the change is visible. If a credential is set and no file has the
    password, ask for it on the terminal.

    A dry run writes nothing and asks for no password. Raises Invalid if there is no usable password, and Refused if
    this connection cannot write credentials. Raises Unreachable if the cluster does not answer, and Unseen if the
    change does not become visible in time.
    """
    user = str(entities[USERS])
    entity = Entity(user=user)
    password = _password(asked, password_file)
    if dry_run:
        with world.quotas(at) as quotas:
            quotas.must_accept_credentials()
        shown = {mechanism: f"iterations={count}" for mechanism, count in asked.iterations.items()}
        return Unwritten(altered=entity, added=shown, deleted=asked.delete)
    if asked.iterations and password is None:
        password = _typed(user)
    keys = tuple(scram_keys(mechanism, count, password or "") for mechanism, count in asked.iterations.items())
    with world.quotas(at) as quotas:
        change = ScramChange(user=user, add=keys, delete=asked.delete)
        absent = actions.alter_credentials(quotas, change, clock.until_seen())
    return AlteredQuotas(
        altered=entity,
        sentence=sentence(at, entities, entity),
        notes=tuple(f"{entity}: {mechanism} was not set; nothing to delete" for mechanism in absent),
    )


def _password(asked: ScramRequest, file: Path | None) -> str | None:
    """Return the password from a file, or None if no file contains a password."""
    if file is None:
        if asked.password is not None:
            must_be_a_password(asked.password)
        return asked.password
    if not asked.iterations:
        raise Invalid(
            "--password-file works only if --add-config or --add-config-file has a SCRAM credential, because a "
            "deletion needs no password. Leave it out"
        )
    if asked.password is not None:
        raise Invalid("--password-file and --add-config-file both have a password. Give only one password")
    return password_in(file)


def password_in(file: Path) -> str:
    """Return the password in a file with one line, or on stdin (`-`).

    Raises Invalid for a file that cannot be read, for more than one line, and for a password that is not valid.
    """
    text, name = text_file.read(file, "a file with the password on one line")
    password = text.removesuffix("\n").removesuffix("\r")
    if "\n" in password:
        raise Invalid(f"{name}: has more than one line. Give a file with the password on one line")
    must_be_a_password(password)
    return password


def _typed(user: str) -> str:
    if not has_terminal():
        raise Invalid(f"SCRAM credentials need a password, and kquota cannot ask for it without a terminal. {_ADVICE}")
    password = getpass.getpass(f"kquota: new password of user {user!r}: ")
    must_be_a_password(password)
    if getpass.getpass("kquota: repeat the password: ") != password:
        raise Invalid("the two passwords differ. Nothing was written. Run the command again")
    return password
