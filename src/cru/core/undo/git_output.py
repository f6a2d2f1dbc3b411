"""What git prints, as values."""

from __future__ import annotations

import os
from collections.abc import Sequence


def read_entries(listed: bytes) -> Sequence[tuple[bytes, int, bytes]]:
    """Return the tag, the mode and the name of each entry of an index, from `ls-files -z -v --stage`."""
    entries = [entry.partition(b"\t") for entry in listed.split(b"\0") if entry]
    return [(about[:1], int(about[2:].partition(b" ")[0], 8), name) for about, _, name in entries]


def read_sizes(listed: bytes) -> dict[str, int]:
    """Return the size of each file when it was taken in, from `ls-files --debug`."""
    sizes: dict[str, int] = {}
    name, _, rest = listed.partition(b"\0")
    while rest:
        _, _, after = rest.partition(b"  size: ")
        size, _, _ = after.partition(b"\t")
        sizes[os.fsdecode(name)] = int(size)
        _, _, tail = after.partition(b"\n")
        name, _, rest = tail.partition(b"\0")
    return sizes


def read_batch(batch: bytes) -> dict[str, bytes]:
    """Return the content of each blob that exists, from `cat-file --batch`."""
    objects: dict[str, bytes] = {}
    at = 0
    while at < len(batch):
        end = batch.index(b"\n", at)
        name, kind, *size = batch[at:end].split(b" ")
        at = end + 1
        if kind == b"blob":
            objects[name.decode()] = batch[at : at + int(size[0])]
            at += int(size[0]) + 1
    return objects
