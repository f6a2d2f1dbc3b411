"""What the rules say about web addresses that no call names: where a redirect leads, and what a name leads to."""

from __future__ import annotations

from cru.core.guard.rules.gate import Gate


class FetchLeave:
    """Judges for the tool `fetch`, with the rules and the mode as they are at that moment."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def why_not(self, url: str) -> str:
        """The rule that denies an address or wants a question for it, "" if none does."""
        verdict = self._gate.judge("fetch", "fetch", url)
        return verdict.reason if verdict.decision == "deny" or (verdict.decision == "ask" and verdict.explicit) else ""

    def why_not_origin(self, url: str) -> str:
        """Why a call with this address would not run without a question."""
        from cru.core.base.net.web_url import why_not_public

        verdict = self._gate.judge("fetch", "fetch", url, why_ask=why_not_public(url))
        return verdict.reason if verdict.decision != "allow" else ""

    def is_named(self, url: str) -> bool:
        """Whether an allow rule, or a kept answer, names the host."""
        return self._gate.judge("fetch", "fetch", url, why_ask="its address is not public").decision == "allow"
