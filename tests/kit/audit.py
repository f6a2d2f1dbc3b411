"""Whether anything that a plain install brings is known to be vulnerable (`make audit`): what pip-audit says of requirements.txt.

The exit status is 0 if each package was looked up and none is, 1 if one is, 2 if that is not known. pip-audit itself says "No known
vulnerabilities found" when it could look up nothing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
from tests.kit.pins import FILE

OPTIONS = ("--require-hashes", "--disable-pip", "--format", "json", "--progress-spinner", "off")
UNREACHABLE = "the database of vulnerabilities cannot be reached from here, so nothing is known"


def audit(program: Path, requirements: Path) -> tuple[int, str]:
    """The exit status and what a person reads."""
    done = subprocess.run([str(program), "-r", str(requirements), *OPTIONS], capture_output=True, text=True)
    try:
        packages: list[dict[str, Any]] = msgspec.json.decode(done.stdout)["dependencies"]
    except (msgspec.DecodeError, KeyError, TypeError):
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        return 2, f"{UNREACHABLE}: {last[0]}"
    unknown = [str(package["name"]) for package in packages if "skip_reason" in package]
    lines = [line for package in packages for line in _describe(package)]
    if unknown and len(unknown) == len(packages):
        return 2, f"{UNREACHABLE}: none of {len(packages)} packages was found there"
    if unknown:
        lines.append(f"not found, so not checked: {', '.join(unknown)}")
    if any(package.get("vulns") for package in packages):
        return 1, "\n".join(lines)
    return (2 if unknown else 0), "\n".join(
        [*lines, f"{len(packages) - len(unknown)} packages: none is known to be vulnerable"]
    )


def _describe(package: dict[str, Any]) -> list[str]:
    return [
        f"{package['name']} {package['version']}: {flaw['id']}, mended in {', '.join(flaw['fix_versions']) or 'no version'}"
        for flaw in package.get("vulns", ())
    ]


def main() -> int:
    status, text = audit(Path(sys.argv[1]), FILE)
    print(text)
    return status


if __name__ == "__main__":
    sys.exit(main())
