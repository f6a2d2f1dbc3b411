"""Reads files of git strictly: which of their lines could make git run a program or obey another file.

What is not understood for certain counts as dangerous. So git may read more out of a file than this module does, never less.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from hashlib import sha256

from cru.core.base.files import is_inside

PASSED = frozenset({".cache", ".tox", ".venv", "__pycache__", "node_modules"})
"""Folders in which git is not started, so that nothing is looked for in them."""
_SECTION = re.compile(r'\[([A-Za-z0-9-]+)(?: "([^"]*)")?\]\s*')
_KEY = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=(.*))?")
_VALUE = re.compile(r'"[^"]*"|[^"#;\r]*')
_EMPTY = re.compile(r"\s*(?:[#;].*)?")
_HARMLESS = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|safecrlf"
    r"|abbrev|quotepath|bigfilethreshold|compression|longpaths|sparsecheckout|sparsecheckoutcone|splitindex|untrackedcache"
    r"|preloadindex|commitgraph|multipackindex|protecthfs|protectntfs|whitespace|commentchar|checkstat|trustctime|sharedrepository)"
    r"|(user|author|committer)\.(name|email)|user\.useconfigonly"
    r"|extensions\.(objectformat|compatobjectformat|refstorage|worktreeconfig|preciousobjects|partialclone|noop|relativeworktrees)"
    r"|init\.defaultbranch|pull\.(rebase|ff)|push\.(default|autosetupremote|followtags)|fetch\.(prune|prunetags)|index\.version"
    r"|rebase\.(autostash|autosquash|updaterefs)|merge\.(ff|conflictstyle|renames)|diff\.(algorithm|renames|colormoved)"
    r"|options\.(no-commit|edit|signoff|record-origin|allow-ff|allow-empty|allow-empty-message|mainline|gpg-sign|strategy-option"
    r"|drop-redundant-commits|keep-redundant-commits|allow-rerere-auto|default-msg-cleanup)"
    r"|(commit|tag)\.gpgsign|(advice|color)\.\w+|gc\.(auto|autodetach)|rerere\.enabled|feature\.manyfiles|submodule\.recurse"
)
_HARMLESS_OF_NAMED = re.compile(
    r"remote\.(url|pushurl|fetch|tagopt|prune|prunetags|mirror|promisor|partialclonefilter|skipdefaultupdate|skipfetchall)"
    r"|branch\.(remote|merge|rebase|pushremote|description)|submodule\.(active|url|branch|fetchrecursesubmodules|ignore)"
)
"""Settings with a name in their section: `[remote "origin"]`."""
_STRATEGIES = frozenset({"octopus", "ort", "ours", "recursive", "resolve", "subtree"})
"""Strategies of a merge that git brings. Of any other name `x/y`, git would run the program `git-merge-x/y` of the work tree."""
_EXEC = re.compile(r"\s*(x|exec)\b", re.IGNORECASE)


def dangerous_settings(text: str, folder: str, trees: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Yield the number and the meaning of each line of a configuration file that could make git run or obey something.

    folder: of git, to which the file belongs; trees: the folders that `core.worktree` of a submodule may name
    """
    if "\\" in text or "\0" in text:  # a line may go on in the next one
        yield from ((number, f"{_digest(text)} {number}") for number, _ in enumerate(text.split("\n")))
        return
    header, section, name = "", "", ""
    for number, line in enumerate(text.split("\n")):
        if match := _SECTION.fullmatch(line):
            header, section, name = line, match[1].lower(), match[2] or ""
        elif _EMPTY.fullmatch(line):
            continue
        elif (
            not (match := _KEY.fullmatch(line))
            or not _VALUE.fullmatch(value := (match[2] or "").strip())
            or not _is_harmless(f"{section}.{match[1].lower()}", name, value.strip('"'), folder, trees)
        ):
            yield number, f"{header.strip()} {line.strip()}"


def _is_harmless(key: str, name: str, value: str, folder: str, trees: tuple[str, ...]) -> bool:
    if key == "core.worktree" and not name:  # git would write files of the repository there
        place = os.path.realpath(os.path.join(folder, value))
        return "/modules/" in folder and any(is_inside(place, tree) for tree in trees)
    if name:
        return _HARMLESS_OF_NAMED.fullmatch(key) is not None and not _leads_to_programs(value)
    if key == "options.strategy":
        return value in _STRATEGIES
    return _HARMLESS.fullmatch(key) is not None


def _leads_to_programs(value: str) -> bool:
    """Return whether git may run programs of a remote: of `ext::` and the like, or as hooks of a repository that is not looked at."""
    if "::" in value:
        return True
    is_local = "://" not in value or value.lower().startswith("file:")
    return is_local and ("%" in value or not (PASSED | {".git"}).isdisjoint(value.rstrip("/").split("/")[:-1]))


def dangerous_strategy(text: str, folder: str, trees: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Yield the lines that name a strategy of merges which git does not bring."""
    for number, line in enumerate(text.split("\n")):
        if line.strip() and line.strip() not in _STRATEGIES:
            yield number, line.strip()


def dangerous_steps(text: str, folder: str, trees: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Yield the lines of a rebase's list of steps that run a command."""
    for number, line in enumerate(text.split("\n")):
        if _EXEC.match(line):
            yield number, line.strip()


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
