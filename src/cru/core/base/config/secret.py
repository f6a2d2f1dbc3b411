"""Which settings nobody should see on a screen or in a record, and addresses without what is secret in them."""

from __future__ import annotations

import re
from collections.abc import Mapping

MASK = "***"
ADDRESSES = frozenset({"base_url"})
"""Settings that hold an address, which may have a password or a key in it."""

_SECRET = re.compile(r"(^|[_-])(key|token|secret|password)$", re.IGNORECASE)
_REFERENCE = re.compile(r"[\w .-]*(\$\{\w+(:-[^}]*)?\})+")
"""With words before it, as in `Bearer ${TOKEN}`."""
_SECRET_SET = re.compile(r"""(^|[\s._"'{,-])(key|token|secret|password)["']?\s*=""", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether a setting of that name holds a secret, in whatever table it stands."""
    return _SECRET.search(name) is not None


def holds_secret(setting: str) -> bool:
    """Whether a `KEY=VALUE` says something secret; a table may be written inline."""
    key, _, value = setting.partition("=")
    return _SECRET_SET.search(setting) is not None or (key.strip() in ADDRESSES and bool(secrets_in_url(value)))


def mask_table(table: Mapping[str, str]) -> dict[str, str]:
    """Variables or headers: references to the environment (`${NAME}`) as they are, everything else hidden."""
    return {name: text if not text or _REFERENCE.fullmatch(text) else MASK for name, text in table.items()}


def mask_servers(value: object) -> object:
    """Settings of servers: their variables and headers as `mask_table` shows them, addresses without what is secret."""
    if not isinstance(value, dict):
        return value
    out: dict[str, object] = {}
    for key, inner in value.items():
        if key in ("env", "headers") and isinstance(inner, dict):
            out[key] = mask_table(inner)
        else:
            out[key] = mask_url(inner) if key == "url" and isinstance(inner, str) else mask_servers(inner)
    return out


def secrets_in_url(url: str) -> list[str]:
    """What may be secret in an address: user name, password, and the values of its query; as written, and decoded."""
    from urllib.parse import unquote_plus

    start, end, query = _find_parts(url)
    parts = [url[start:end], *url[start:end].split(":", 1)] if end > start else []
    if query:
        parts += [part.partition("=")[2] or part for part in re.split("[&;]", url[query:].partition("#")[0])]
    return [
        text for text in dict.fromkeys(spelling for text in parts for spelling in (text, unquote_plus(text))) if text
    ]


def mask_url(url: str) -> str:
    """The address with *** in the place of user name and password and of each value of its query."""
    start, end, query = _find_parts(url)
    shown = f"{url[:start]}{MASK}" if end > start else url[:end]
    if not query:
        return shown + url[end:]
    pairs = [part.partition("=") for part in re.split("[&;]", url[query:].partition("#")[0])]
    return (
        shown + url[end:query] + "&".join(f"{name}={MASK}" if mark else MASK for name, mark, _ in pairs if name or mark)
    )


def _find_parts(url: str) -> tuple[int, int, int]:
    """Where user name and password begin and end (twice the same place if there are none), and where the query begins (0: none)."""
    start = url.find("://") + 3 if "://" in url else 0
    tail = re.compile("[/?#]").search(url, start)
    end = url.rfind("@", start, tail.start() if tail else len(url))
    mark = url.find("?", start)
    return start, max(start, end), mark + 1 if mark >= 0 else 0
