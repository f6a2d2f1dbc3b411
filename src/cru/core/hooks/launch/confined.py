"""A project's command hook in the sandbox: what it may see and change beside what every confined program may."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from cru.core.base.process.confined import Confine, PreparedCommand, ProjectProgram
from cru.core.hooks import ENV_FOLDER
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.facts import SessionFacts


class _NamedFiles(msgspec.Struct):
    """Files in cru's home that a payload names."""

    transcript_path: str = ""
    agent_transcript_path: str = ""


def confinement(
    entry: HookEntry, facts: SessionFacts, cwd: Path, stdin: bytes, env: Mapping[str, str]
) -> Confine | None:
    """What confines a run of the entry; None: it runs as it is."""
    confine = facts.confine
    if confine is None or not entry.of_project:
        return None
    writable = _own_file(env.get("CLAUDE_ENV_FILE", ""), facts.folder / ENV_FOLDER)
    readable = [name for path in _named_files(stdin) for name in _own_file(path, facts.home)]

    async def run(argv: tuple[str, ...]) -> PreparedCommand | None:
        return await confine(ProjectProgram(argv, str(cwd), str(facts.root), tuple(readable), writable))

    return run


def _named_files(stdin: bytes) -> tuple[str, ...]:
    try:
        named = msgspec.json.decode(stdin, type=_NamedFiles)
    except msgspec.MsgspecError:  # a dialect that says it in another way, and names no file
        return ()
    return named.transcript_path, named.agent_transcript_path


def _own_file(path: str, folder: Path) -> tuple[str, ...]:
    """The path, if it is one of a file in this folder of cru's."""
    return (path,) if path and Path(path).is_relative_to(folder) and ".." not in Path(path).parts else ()
