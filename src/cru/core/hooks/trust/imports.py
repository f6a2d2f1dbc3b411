"""Files that a script loads from beside itself: modules of Python, which come before those of the standard library, and what a shell,
node, Ruby or Perl script names to load. Nothing is run: imports are found by their text."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from cru.core.base.files.regular import open_regular
from cru.core.hooks.trust.files import LookupBudget

BELOW = 500
"""Files of a folder that is given to an interpreter."""
MOST = 64
"""Scripts that are followed."""
READ = 1 << 18
"""Bytes of a script that are looked at."""
CACHES = "__pycache__"
READS_CACHES = re.compile(r"PYTHON\w*CACHE|\b(?:env|unset|sudo|doas|su|exec)\b|(?:^|\s)-[A-Za-z]*[EI]")
"""In a command: what may make Python read the caches in the project, from which `NO_CACHES` keeps it."""
NO_CACHES = {"PYTHONPYCACHEPREFIX": os.devnull, "PYTHONDONTWRITEBYTECODE": "1"}
"""Variables with which Python neither writes nor reads compiled modules beside their sources."""
MODULES = (".py", ".pyc", ".pyo", ".so", ".pyd")
SHADOWED = sys.stdlib_module_names - {"test"}
"""Modules of the standard library that a file beside the script takes the place of; nothing imports its tests."""
_IMPORT = re.compile(
    r"^[ \t]*(?:import|from)[ \t]+([^#;\n]+)|(?:import_module|__import__)\(\s*[\"']([\w.]+)", re.MULTILINE
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_SHELL = re.compile(r"(?:^|[;&|({]|\b(?:then|else|do)\b)[ \t]*(?:source|\.)[ \t]+([^\n;&|]+)", re.MULTILINE)
_NODE = re.compile(r"(?:\brequire\s*\(|\bimport\s*\(|\bfrom|\bimport)\s*[\"'](\.{1,2}/[^\"'\n]+)[\"']")
_RUBY = re.compile(r"\b(?:require_relative|load|require)\b[ \t(]*[\"']([^\"'\n]+)[\"']")
_PERL = re.compile(r"\b(?:require|do)\b[ \t(]*[\"']([^\"'\n]+)[\"']")
Loads = tuple[re.Pattern[str], tuple[str, ...]]
# What makes a script one of a language: its suffix, or a word of its first line → what it loads, and the suffixes that may be left out.
LANGUAGES: dict[str, Loads] = {
    "sh": (_SHELL, ("",)),
    "node": (_NODE, ("", ".js", ".mjs", ".cjs", ".ts", "/index.js", "/index.ts")),
    "ruby": (_RUBY, ("", ".rb")),
    "perl": (_PERL, ("",)),
}
SUFFIXES = {
    ".py": "python", ".sh": "sh", ".bash": "sh", ".zsh": "sh", ".js": "node", ".mjs": "node", ".cjs": "node", ".ts": "node",
    ".rb": "ruby", ".pl": "perl", ".pm": "perl",
}  # fmt: skip
_FIRST_LINE = re.compile(r"#!.*?(python|node|deno|bun|ruby|perl|sh)(?:[\d.]*)(?:\s|$)")


def find_imports(
    scripts: Iterable[str], modules: Iterable[str], budget: LookupBudget, *, skips_caches: bool
) -> list[str]:
    """Return the files that these scripts may load, or would if they were there, and the folders to watch for them. modules: folders that
    `python -m` runs from, and the modules that it runs, as paths."""
    paths: dict[str, None] = {}
    waiting = list(dict.fromkeys(scripts))

    def add(path: str) -> None:
        if path not in paths and len(waiting) < MOST:
            waiting.append(path)
        paths[path] = None

    for module in modules:
        folder, name = os.path.split(module)
        _python(folder, {name}, budget, add, skips_caches)
    for script in waiting:  # grows
        if budget.over:
            break
        text = _read(script, budget)
        language = SUFFIXES.get(os.path.splitext(script)[1].lower()) or _language(text)
        if language == "python":
            imported = {name for match in _IMPORT.finditer(text) for name in _NAME.findall(match[1] or match[2])}
            skips = skips_caches and not READS_CACHES.search(text.partition("\n")[0].removeprefix("#!/usr/bin/env"))
            _python(os.path.dirname(script), imported, budget, add, skips)
        elif language in LANGUAGES:
            for path in _named(text, os.path.dirname(script), LANGUAGES[language]):
                if budget.is_file(path):
                    add(path)
    return list(paths)


def _read(path: str, budget: LookupBudget) -> str:
    try:
        with open(open_regular(path), "rb", buffering=0) as file:
            data = file.read(READ)
    except OSError:  # it cannot be shown either, which the review says
        return ""
    budget.size -= len(data)
    return data.decode("utf-8", "replace")


def _language(text: str) -> str:
    match = _FIRST_LINE.match(text)
    return {"deno": "node", "bun": "node"}.get(match[1], match[1]) if match else ""


def _python(folder: str, names: set[str], budget: LookupBudget, add: Callable[[str], None], skips_caches: bool) -> None:
    """Add the modules that Python would find in the folder of a script, and the folder itself, so that a new one is noticed."""
    try:
        listed = sorted(os.listdir(folder or "."))
    except OSError:
        return
    if not budget.spend(len(listed)):
        return
    add(folder)
    if CACHES in listed and not skips_caches:
        for inner in folder_files(os.path.join(folder, CACHES), budget, skips_caches=False)[0]:
            add(inner)
    for name in listed:
        path, (stem, _, rest) = os.path.join(folder, name), name.partition(".")
        if stem not in names and stem not in SHADOWED:
            continue
        if rest and os.path.splitext(name)[1] in MODULES:
            add(path)
        elif not rest and budget.is_dir(path) and _is_package(path, stem, names, budget):
            for inner in folder_files(path, budget, skips_caches=skips_caches)[0]:
                add(inner)


def _is_package(path: str, name: str, names: set[str], budget: LookupBudget) -> bool:
    """Whether an import of the name leads to this folder: one without `__init__.py` comes behind the standard library."""
    return (name in names and name not in SHADOWED) or budget.is_file(os.path.join(path, "__init__.py"))


def _named(text: str, folder: str, loads: Loads) -> Iterator[str]:
    """The paths that a script may mean by what it loads. What a variable stands for is taken to be the folder of the script."""
    pattern, suffixes = loads
    for match in islice(pattern.finditer(text), MOST):
        plain = _without_unknown_beginning(re.sub("[\"']", "", match[1])).split()
        word = plain[0] if plain else ""
        if word and "$" not in word and "\0" not in word:
            yield from (os.path.normpath(os.path.join(folder, word + suffix)) for suffix in suffixes)


def folder_files(folder: str, budget: LookupBudget, *, skips_caches: bool) -> tuple[list[str], bool]:
    """Return the folder and all that lies in it, and whether that is more than is looked at. skips_caches: compiled modules that have
    their source beside them are left out, since nothing runs them."""
    walked = (os.path.join(at, name) for at, folders, names in os.walk(folder) for name in (*folders, *names))
    below = list(islice(walked, BELOW + 1))
    budget.spend(len(below))
    is_cut = len(below) > BELOW
    kept = below[:BELOW]
    if skips_caches:
        sources = set(kept)
        kept = [path for path in kept if not _is_cache(path, sources)]
    return [folder, *kept], is_cut


def _is_cache(path: str, sources: set[str]) -> bool:
    at, name = os.path.split(path)
    if name == CACHES:
        return True
    if os.path.basename(at) != CACHES or not name.endswith(".pyc"):
        return False
    return os.path.join(os.path.dirname(at), name.partition(".")[0] + ".py") in sources


def _without_unknown_beginning(path: str) -> str:
    """Return a path without its folders up to the last one whose name is known only when it runs."""
    folders = path[: max(path.rfind("/"), 0)]
    last = max(folders.rfind(character) for character in "$`)}")
    return path if last < 0 else path[path.index("/", last) + 1 :]
