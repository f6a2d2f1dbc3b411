"""What a call of `fetch` may reach: leave was given for one origin, and for public addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cru.core.base.net import BadUrl
from cru.core.base.net.web_url import WebUrl, parse_web_url, why_address_not_public, why_not_public
from cru.core.tools.protocol import ArgumentError, ToolError, ToolServices

if TYPE_CHECKING:
    from cru.core.guard.rules.gate import Gate

_CALL = "call `fetch` with that address if it is meant"


class WebLeave:
    """Judges where one call leads. Its URL itself was judged before the call. Raises ArgumentError.

    url: that of the call, in its one spelling
    """

    def __init__(self, url: str, services: ToolServices) -> None:
        try:
            self._asked = parse_web_url(url)
        except BadUrl as error:
            raise ArgumentError(f"`url`: {error.message}") from error
        self.url = self._asked.text
        self._rules = services.rules.web() if services.rules.web is not None else None

    def check(self, url: str) -> None:
        """Each hop: a redirect to another origin needs leave like a call of its own, and none may lead where a rule forbids. Raises
        ToolError."""
        if url == self.url:
            return
        is_new = not self._is_same_origin(parse_web_url(url))
        if self._rules is None:
            why = why_not_public(url) if is_new else ""
        else:
            why = self._rules.why_not_origin(url) if is_new else self._rules.why_not(url)
        if why:
            raise ToolError(f"{self.url} leads to {url}, and {why}", _CALL)

    def check_address(self, url: str, address: str) -> None:
        """An address that a host's name leads to: who gave leave saw the name only. Raises ToolError."""
        why = why_address_not_public(address)
        if not why or why_not_public(url):  # leave was given for what is no public address by its name
            return
        if self._rules is None or not self._rules.is_named(url):
            parts = parse_web_url(url)
            raise ToolError(
                f"{parts.host} leads to {address}, and {why}",
                f'only a rule opens it: allow = ["fetch:{parts.scheme}://{parts.host}/*"] in [permissions]',
            )

    def _is_same_origin(self, other: WebUrl) -> bool:
        asked = self._asked
        to_tls = asked.origin == ("http", asked.host, 80) and other.origin == ("https", asked.host, 443)
        return other.origin == asked.origin or to_tls


class FetchLeave:
    """The rules for web addresses that no call names: where a redirect leads, and what a name leads to. They are those of the moment."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def why_not(self, url: str) -> str:
        """The rule that denies an address or wants a question for it, "" if none does."""
        verdict = self._gate.judge("fetch", "fetch", url)
        return verdict.reason if verdict.decision == "deny" or (verdict.decision == "ask" and verdict.explicit) else ""

    def why_not_origin(self, url: str) -> str:
        """Why a call with this address would not run without a question."""

        verdict = self._gate.judge("fetch", "fetch", url, why_ask=why_not_public(url))
        return verdict.reason if verdict.decision != "allow" else ""

    def is_named(self, url: str) -> bool:
        """Whether an allow rule, or a kept answer, names the host."""
        return self._gate.judge("fetch", "fetch", url, why_ask="its address is not public").decision == "allow"
