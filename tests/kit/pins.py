"""The hashed requirements of a plain install (`make pins`): `requirements.txt`, packages and their hashes, and nothing else.

The versions are those of constraints.txt, the hashes all that the package index has of them, for every system. Which index that is, is the
business of the machine that runs this (`uv` reads its own settings).
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = ROOT / "requirements.txt"
LOWEST = "3.11"
"""Python that the versions must run on."""
OPTIONS = (
    "--universal", "--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--quiet",
)  # fmt: skip
PIN = re.compile(r"[a-z0-9][a-z0-9._-]*==[A-Za-z0-9.!+_-]+( ; [^\\]+)? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


def resolve(program: Path) -> str:
    """What `uv` makes of pyproject.toml and constraints.txt. Raises CalledProcessError."""
    words = (str(program), "pip", "compile", "pyproject.toml", "-c", "constraints.txt", "--python-version", LOWEST)
    return subprocess.run([*words, *OPTIONS], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def foreign_lines(text: str) -> list[str]:
    """What is neither a package with its version nor a hash: an address, an option."""
    return [line for line in text.splitlines() if not PIN.fullmatch(line) and not HASH.fullmatch(line)]


def pinned(text: str) -> dict[str, str]:
    """Package → version."""
    pins = (line.partition(" ")[0].partition("==") for line in text.splitlines() if "==" in line)
    return {name: version for name, _, version in pins}


def main() -> int:
    text = resolve(Path(sys.executable).with_name("uv"))
    if foreign := foreign_lines(text):
        print(f"these lines do not belong into {FILE.name}: {foreign[:5]}")
        return 1
    FILE.write_text(text)
    print(f"{FILE.name}: {len(pinned(text))} packages, {text.count('--hash=')} hashes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
