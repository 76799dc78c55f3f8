"""Parses logins in JAAS syntax, from `sasl.jaas.config` and from the JAAS files of the JVM."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

from kquota import bounded
from kquota.errors import Invalid

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|//[^\r\n]*|/\*.*?\*/|/[^\r\n]*)
      | (?P<quoted>"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*')
      | (?P<mark>[=;{}])
      | (?P<word>[^\s"'=;{}/]+)
      | (?P<wrong>.)""",
    re.DOTALL | re.VERBOSE,
)
_CONTROLS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """One login module and its options. The repr omits the options, because they include secrets."""

    module: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def name(self) -> str:
        """The module's class without its package."""
        return self.module.rpartition(".")[2]

    def user_and_password(self, where: str) -> tuple[str, str]:
        """Return the options `username` and `password`. Raises Invalid if one is missing or empty.

        The message begins with `where`.
        """
        if missing := [key for key in ("username", "password") if not self.options.get(key)]:
            raise Invalid(f"{where} has no {' and no '.join(missing)}. Add {' and '.join(missing)}")
        return self.options["username"], self.options["password"]


def login(text: str, where: str) -> Login:
    """Return the only login of a `sasl.jaas.config` (KIP-85).

    Raises Invalid if the text is not exactly one login of the form `Module flag key="value" …;`. The message has
    `where`, but no part of the text.
    """
    tokens = _tokens(text, where)
    found = _login(tokens, where)
    if next(tokens, None) is not None:
        raise Invalid(f"{where} has more than one login module. Kafka accepts only one. Remove the others")
    return found


def section(path: Path, name: str, option: str) -> Login | None:
    """Return the login of a section in a JAAS file, or None if the section does not exist. The file must be UTF-8.

    Raises Invalid for an unreadable or invalid file, and if the section does not have exactly one login module. Also
    raises Invalid if the file has the section twice, because Java refuses such a file. The message has the option and
    the file, but no content of the file.
    """
    try:
        text = bounded.file_text(path, bounded.SETTINGS, pipe=True)
    except (OSError, UnicodeDecodeError) as error:
        step = "Check the path and its permissions"
        reason = f"{error.strerror}. {step}" if isinstance(error, OSError) else "it is not UTF-8. Save it as UTF-8"
        raise Invalid(f"{option}: cannot read {path}: {reason}") from None
    where = f"{option}: {path}"
    tokens = _tokens(text, where)
    found = None
    for head, _quoted in tokens:
        _expect("{", tokens, where, "after the name of a section. Add it")
        logins = list(_logins(tokens, where))
        _expect(";", tokens, where, "after the } of a section. Add it")
        if head == name:
            if found is not None:
                raise Invalid(f"{where}: section {name} is listed twice. Remove one of them")
            if len(logins) != 1:
                raise Invalid(f"{where}: section {name} has {len(logins)} login modules. Exactly one is needed")
            found = logins[0]
    return found


def file_in(java_options: str) -> Path | None:
    """Return the file of `-Djava.security.auth.login.config=FILE` in JVM options, or None if the option is missing or
    empty.
    """
    named = java_property(java_options, "java.security.auth.login.config")
    return Path(named.removeprefix("=").removeprefix("file:")) if named else None


def java_property(java_options: str, name: str) -> str | None:
    """Return the value of the last `-Dname=value` among JVM options, or None if there is none."""
    try:
        options = shlex.split(java_options)
    except ValueError:
        options = java_options.split()
    prefix = f"-D{name}="
    return next((o.removeprefix(prefix) for o in reversed(options) if o.startswith(prefix)), None)


def _logins(tokens: Iterator[tuple[str, bool]], where: str) -> Iterator[Login]:
    for token in tokens:
        if token == ("}", False):
            return
        yield _login(chain([token], tokens), where)
    raise Invalid(f"{where}: a section is not closed. Close it with }};")


def _login(tokens: Iterator[tuple[str, bool]], where: str) -> Login:
    module, _ = next(tokens, (";", False))
    if module in ("", "=", ";"):
        raise Invalid(f"{where}: no login module is named. Write the class of the login module")
    flag, _ = next(tokens, (";", False))
    if flag.lower() not in _FLAGS:
        raise Invalid(f"{where}: the login module must be followed by one of {', '.join(_FLAGS)}")
    options: dict[str, str] = {}
    for key, quoted in tokens:
        if key == ";" and not quoted:
            return Login(module=module, options=options)
        quotes = "a value with spaces or special characters needs double quotes"
        _expect("=", tokens, where, f"after the name of an option; {quotes}")
        value, quoted = next(tokens, (";", False))
        if value in ("=", ";", "{", "}") and not quoted:
            raise Invalid(f"{where}: an option has no value. Give each option a value")
        options[key] = value
    raise Invalid(f"{where}: the login module does not end with a semicolon. Add it")


def _expect(mark: str, tokens: Iterator[tuple[str, bool]], where: str, when: str) -> None:
    if next(tokens, None) != (mark, False):
        raise Invalid(f"{where}: {mark} is missing {when}")


def _tokens(text: str, where: str) -> Iterator[tuple[str, bool]]:
    """Split the text like Java's StreamTokenizer. Yield each token, and True if the token is a quoted string."""
    for match in _TOKEN.finditer(text):
        if match["wrong"]:
            raise Invalid(f"{where}: a quote is not closed. Close the quote")
        if match["quoted"]:
            yield _unquoted(match["quoted"][1:-1]), True
        elif not match["skip"]:
            yield match[0], False


def _unquoted(text: str) -> str:
    """Replace the escapes of StreamTokenizer: octal codes and C's control characters. Before any other
    character, only the backslash is removed.
    """
    return re.sub(
        r"\\(?:([0-3][0-7]{0,2}|[4-7][0-7]?)|(.))",
        lambda match: chr(int(match[1], 8)) if match[1] else _CONTROLS.get(match[2], match[2]),
        text,
        flags=re.DOTALL,
    )
