"""Long texts of hooks: a file in the context's folder, and the beginning of it for the model."""

from __future__ import annotations

from hashlib import sha256

from msgspec.structs import replace

from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.result import HookResult

LONGEST = 10_000
"""Characters of one context that go on as they are (Claude's limit; Codex' is about the same)."""
PREVIEW = 2_000


def spill_context(result: HookResult, facts: SessionFacts) -> HookResult:
    """The same with contexts that are too long in files."""
    context = tuple(spill_text(text, facts) for text in result.answer.context)
    return (
        result if context == result.answer.context else replace(result, answer=replace(result.answer, context=context))
    )


def spill_text(text: str, facts: SessionFacts) -> str:
    """A text as it goes on: a longer one is saved, and its beginning and the file stand for it."""
    if len(text) <= LONGEST:
        return text
    from cru.files.atomic import replace_file
    from cru.tools.protocol import OUTPUT_FOLDER

    data = text.encode("utf-8", "replace")
    path = facts.folder / OUTPUT_FOLDER / f"hook_{sha256(data).hexdigest()[:12]}.txt"
    shown = f"{text[:PREVIEW]}\n[… {len(text) - PREVIEW:,} more characters"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data, keep_mode=False)
    except OSError as error:
        return f"{shown}; they could not be saved: {error.strerror}]"
    return f"[{len(text):,} characters from a hook; all of them are in {path}]\n{shown} in the file]"
