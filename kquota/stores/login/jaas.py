"""JAAS texts, in `sasl.jaas.config` and in the files of java.security.auth.login.config: who logs in, and how."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

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
    """One login module and its options, secrets among them: they are not in its repr."""

    module: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def name(self) -> str:
        """The module's class without its package."""
        return self.module.rpartition(".")[2]


def login(text: str, where: str) -> Login:
    """The one login of a `sasl.jaas.config` (KIP-85).

    Raises Invalid, naming `where` and none of the text, where it is not `Module flag key="value" …;`.
    """
    tokens = _tokens(text, where)
    found = _login(tokens, where)
    if next(tokens, None) is not None:
        raise Invalid(f"{where}: more than one login module; Kafka accepts only one")
    return found


def section(path: Path, name: str, option: str) -> Login | None:
    """The login of a JAAS file's section, None where there is no such section; the file is UTF-8.

    Raises Invalid, naming option and file and nothing of what is in it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Invalid(f"{option}: cannot read {path}: {reason}") from None
    where = f"{option}: {path}"
    tokens = _tokens(text, where)
    found = None
    for head, _quoted in tokens:
        _expect("{", tokens, where, "after the name of a section")
        logins = list(_logins(tokens, where))
        _expect(";", tokens, where, "after the } of a section")
        if head == name:
            if len(logins) != 1:
                raise Invalid(f"{where}: section {name} has {len(logins)} login modules; exactly one is needed")
            found = logins[0]
    return found


def file_in(java_options: str) -> Path | None:
    """The file that `-Djava.security.auth.login.config=FILE` names in options for a JVM, as KAFKA_OPTS holds them."""
    named = java_property(java_options, "java.security.auth.login.config")
    return Path(named.removeprefix("=").removeprefix("file:")) if named else None


def java_property(java_options: str, name: str) -> str | None:
    """The last value of `-Dname=value` among options for a JVM."""
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
        yield _login(iter([token, *_until_semicolon(tokens, where)]), where)
    raise Invalid(f"{where}: a section is not closed with }};")


def _until_semicolon(tokens: Iterator[tuple[str, bool]], where: str) -> Iterator[tuple[str, bool]]:
    for token in tokens:
        yield token
        if token == (";", False):
            return
    raise Invalid(f"{where}: a login module does not end with a semicolon")


def _login(tokens: Iterator[tuple[str, bool]], where: str) -> Login:
    module, _ = next(tokens, (";", False))
    if module in ("", "=", ";"):
        raise Invalid(f"{where}: no login module is named")
    flag, _ = next(tokens, (";", False))
    if flag.lower() not in _FLAGS:
        raise Invalid(f"{where}: the login module must be followed by one of {', '.join(_FLAGS)}")
    options: dict[str, str] = {}
    for key, quoted in tokens:
        if key == ";" and not quoted:
            return Login(module=module, options=options)
        _expect("=", tokens, where, "after the name of an option; a value with blanks or marks needs double quotes")
        value, quoted = next(tokens, (";", False))
        if value in ("=", ";", "{", "}") and not quoted:
            raise Invalid(f"{where}: an option has no value")
        options[key] = value
    raise Invalid(f"{where}: it does not end with a semicolon")


def _expect(mark: str, tokens: Iterator[tuple[str, bool]], where: str, when: str) -> None:
    if next(tokens, None) != (mark, False):
        raise Invalid(f"{where}: {mark} is missing {when}")


def _tokens(text: str, where: str) -> Iterator[tuple[str, bool]]:
    """Words, marks and quoted texts (True), as Java's StreamTokenizer cuts them."""
    for match in _TOKEN.finditer(text):
        if match["wrong"]:
            raise Invalid(f"{where}: a quote is not closed")
        if match["quoted"]:
            yield _unquoted(match["quoted"][1:-1]), True
        elif not match["skip"]:
            yield match[0], False


def _unquoted(text: str) -> str:
    """StreamTokenizer's escapes: octal, C's controls, and every other character for itself."""
    return re.sub(
        r"\\(?:([0-3][0-7]{0,2}|[4-7][0-7]?)|(.))",
        lambda match: chr(int(match[1], 8)) if match[1] else _CONTROLS.get(match[2], match[2]),
        text,
        flags=re.DOTALL,
    )
