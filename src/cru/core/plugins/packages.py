"""Which installed packages bring plugins: the entry point group `cru.extensions`, read from the packages' own records.

importlib.metadata would do the same and takes longer to load than all of cru's start; what was found is kept in the home folder
until a folder of Python's search path changes."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.core.base.files import MAX_BYTES, read_json
from cru.core.base.files.regular import read_regular

GROUP = "cru.extensions"
CACHE = Path("cache", "packages.json")
RECORDS = (".dist-info", ".egg-info")


class Package(Struct, frozen=True):
    """One entry point: the plugin's name, the module that is imported, the version of the package, the file that says so."""

    name: str
    module: str
    version: str
    file: str


class PackageCache(Struct, frozen=True):
    """`cache/packages.json`.

    folders: of the search path, with their mtimes in nanoseconds (0: none) when this was found
    packages: what was found
    """

    folders: tuple[tuple[str, int], ...]
    packages: tuple[Package, ...] = ()


def installed_packages(home: Path, path: Sequence[str] | None = None) -> tuple[Package, ...]:
    """The entry points of all packages on the search path (sys.path), the first of a package wins."""
    folders = tuple(
        (folder, _mtime(folder)) for folder in (sys.path if path is None else path) if os.path.isabs(folder)
    )
    file = home / CACHE
    try:
        known = read_json(file, PackageCache)
    except (OSError, msgspec.DecodeError):  # none yet, or not understood: it is made anew
        known = PackageCache(())
    if known.folders == folders:
        return known.packages
    packages = tuple(_scan_folders([folder for folder, mtime in folders if mtime]))
    _write_cache(file, PackageCache(folders, packages))
    return packages


def _mtime(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _write_cache(file: Path, cache: PackageCache) -> None:
    from cru.core.base.files.atomic import replace_file

    try:
        replace_file(file, msgspec.json.encode(cache), make_folders=True, follow=False)
    except (OSError, UnicodeEncodeError):
        pass  # only slower: the next start looks again


def _scan_folders(folders: list[str]) -> Iterator[Package]:
    seen: set[str] = set()
    for folder in folders:
        for record in _package_records(folder):
            name, _, version = record.rpartition(".")[0].partition("-")
            package = re.sub(r"[-_.]+", "-", name).lower()
            if package in seen:
                continue
            seen.add(package)
            file = os.path.join(folder, record, "entry_points.txt")
            for key, value in _entry_points(file):
                yield Package(key, value, version.partition("-py")[0] or "0.0.0", file)


def _package_records(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(RECORDS))
    except OSError:  # an archive, or a folder that Python cannot read either
        return []


def _entry_points(file: str) -> Iterator[tuple[str, str]]:
    """Name and value of each entry point of the group."""
    try:
        data = read_regular(file, MAX_BYTES)
    except OSError:  # most packages have none
        return
    if GROUP.encode() not in data:
        return
    section = ""
    for line in data.decode("utf-8", "replace").splitlines():
        text = line.strip()
        if text.startswith("["):
            section = text.strip("[] ")
        elif section == GROUP and "=" in text and not text.startswith(("#", ";")):
            name, _, value = text.partition("=")
            yield name.strip(), value.partition("[")[0].strip()
