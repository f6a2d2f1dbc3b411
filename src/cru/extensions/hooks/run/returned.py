"""What a function of an entry returned: an answer in the words of plugins, in those of commands, or in both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from cru.events.catalog import EventRow
from cru.extensions.hooks.dialects.cru.output import ENVELOPE, KEYS, meaning, unknown
from cru.extensions.hooks.model.result import HookResult
from cru.namespace.answers.misspelled_keys import writable_keys
from cru.namespace.answers.parse import KNOWN
from cru.namespace.answers.words import DECIDING
from cru.namespace.event_table.lazy import raw_items

COMMANDS = frozenset((*KEYS, *ENVELOPE))
PLUGINS = tuple(word for word in DECIDING if word not in COMMANDS)


def split_returned(
    name: str, row: EventRow, raw: Mapping[Any, Any], sent: Mapping[str, Any]
) -> tuple[Mapping[Any, Any], HookResult]:
    """(what is in the words of plugins, what the others say). A key that means nothing is a failure, and the rest counts."""
    fields = writable_keys(name, row)
    event = raw if "type" in raw else ()  # it gave back what it got: only what was not there before are words
    said = {key for key in raw if key in COMMANDS and key not in fields and not (event and key in sent)}
    if said <= KNOWN or any(raw.get(word) for word in PLUGINS):
        said -= KNOWN  # words that both have
    strays = [key for key in raw if not (key in said or key in KNOWN or key in fields or key in sent)]
    if not said and not strays:
        return raw, HookResult()
    rest = {key: value for key, value in raw_items(raw) if key not in said and key not in strays}
    meant = meaning({key: raw[key] for key in said}, row)
    odd = unknown(strays, (*KNOWN, *COMMANDS, *fields))
    return rest, replace(meant, failed="; ".join(filter(None, (meant.failed, *odd))))
