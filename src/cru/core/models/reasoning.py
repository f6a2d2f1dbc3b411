"""Reasoning of a reply, gathered so that it can be sent back. Loaded with the first piece of it."""

from __future__ import annotations

from cru.core.base.values.messages import Delta, Thinking, Thought, ThoughtBlock


class _Growing:
    """A field of a reasoning block that comes in pieces."""

    def __init__(self, piece: str) -> None:
        self.pieces = [piece]


class ThinkingParts:
    """Gathers reasoning so that it can be sent back as the provider wants it."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._field = ""
        self._details: list[dict[str, object]] = []

    def add(
        self, content: str | None, reasoning: str | None, details: list[dict[str, object]] | None, deltas: list[Delta]
    ) -> None:
        text = content or reasoning or ""
        for detail in details or ():
            self._detail(detail)
            if not reasoning and not content:
                text += str(detail.get("text") or detail.get("summary") or "")
        if content:
            self._field = "reasoning_content"
        if text:
            self._text.append(text)
            deltas.append(Thought(text))

    def _detail(self, detail: dict[str, object]) -> None:
        """Fragments of one block have one type and index, and no two ids; their texts are joined, other fields are taken over."""
        last = self._details[-1] if self._details else None
        if (
            last is None
            or any(last.get(key) != detail.get(key) for key in ("type", "index"))
            or (last.get("id") and detail.get("id") not in (None, "", last["id"]))
        ):
            last = {}
            self._details.append(last)
        for key, value in detail.items():
            before = last.get(key)
            if isinstance(value, str) and key in _PIECEWISE:
                if isinstance(before, _Growing):
                    before.pieces.append(value)
                else:
                    last[key] = _Growing(value)
            elif value not in (None, "") or key not in last:
                last[key] = value

    def block(self, provider: str) -> list[Delta]:
        if not self._text and not self._details:
            return []
        text = "".join(self._text)
        data: dict[str, object] = {}
        if self._details:
            data = {"reasoning_details": [_joined(detail) for detail in self._details]}
        elif self._field:
            data = {self._field: text}
        return [ThoughtBlock(Thinking(provider, text, data))]


_PIECEWISE = ("text", "summary", "data")


def _joined(detail: dict[str, object]) -> dict[str, object]:
    return {key: "".join(value.pieces) if isinstance(value, _Growing) else value for key, value in detail.items()}
