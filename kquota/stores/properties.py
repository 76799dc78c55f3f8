"""--command-config: the Java properties that Kafka's tools take, read into kafka-python's words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from kquota.errors import Invalid

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI")
_JAAS: Final = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))')
_PEM_FILES: Final = {
    "ssl.truststore": ("ssl_cafile", "the authorities' certificates"),
    "ssl.keystore": ("ssl_certfile", "the certificate and its key"),
}


def security(path: Path) -> dict[str, object]:
    """What a properties file says of security, as kafka-python's settings; no other property matters here.

    Raises Invalid, naming file and property, for what this client cannot do (JKS stores above all). No value is shown:
    these files hold secrets.
    """
    found = properties(path)
    settings: dict[str, object] = {}
    if protocol := found.get("security.protocol"):
        settings["security_protocol"] = _one_of(_PROTOCOLS, protocol.upper(), "security.protocol", path)
    if mechanism := found.get("sasl.mechanism"):
        settings["sasl_mechanism"] = _one_of(_MECHANISMS, mechanism, "sasl.mechanism", path)
    if jaas := found.get("sasl.jaas.config"):
        login = {key: re.sub(r"\\(.)", r"\1", quoted) or bare for key, quoted, bare in _JAAS.findall(jaas)}
        if {"username", "password"} <= login.keys():
            settings["sasl_plain_username"] = login["username"]
            settings["sasl_plain_password"] = login["password"]
        elif found.get("sasl.mechanism") != "GSSAPI":
            raise Invalid(f"{path}: sasl.jaas.config has no username and password")
    if service := found.get("sasl.kerberos.service.name"):
        settings["sasl_kerberos_name"] = service
    settings |= _tls(found, path)
    return settings


def properties(path: Path) -> dict[str, str]:
    """A Java properties file: comments, continued lines and escapes as java.util.Properties reads them."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"--command-config: cannot read {path}: {error}") from error
    return dict(_pairs(text))


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    joined = re.sub(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t]*", r"\1", text)
    for line in joined.splitlines():
        line = line.lstrip()
        if line and line[0] not in "#!":
            match = re.match(r"((?:[^\\=:\s]|\\.)*)\s*[=:]?\s*(.*)", line)
            if match:
                yield _unescaped(match[1]), _unescaped(match[2])


def _unescaped(text: str) -> str:
    controls = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|(.))",
        lambda match: chr(int(match[1], 16)) if match[1] else controls.get(match[2], match[2]),
        text,
    )


def _tls(found: Mapping[str, str], path: Path) -> dict[str, object]:
    settings: dict[str, object] = {}
    for store, (setting, holds) in _PEM_FILES.items():
        if location := found.get(f"{store}.location"):
            if found.get(f"{store}.type", "JKS").upper() != "PEM":
                raise Invalid(f"{path}: {store}.type must be PEM (a file with {holds}): kquota reads no JKS or PKCS12")
            if not Path(location).is_file():
                raise Invalid(f"{path}: {store}.location: there is no file {location}")
            settings[setting] = location
    if "ssl_certfile" in settings:
        settings["ssl_keyfile"] = settings["ssl_certfile"]
        settings["ssl_password"] = found.get("ssl.key.password")
    if found.get("ssl.endpoint.identification.algorithm", "https") == "":
        settings["ssl_check_hostname"] = False
    return settings


def _one_of(allowed: tuple[str, ...], value: str, name: str, path: Path) -> str:
    if value not in allowed:
        raise Invalid(f"{path}: {name}={value}: must be one of {', '.join(allowed)}")
    return value
