"""What kind of image some bytes are, by how they begin: PNG, JPEG, GIF, WebP, and how large."""

from __future__ import annotations

from msgspec import Struct


class ImageFormat(Struct, frozen=True):
    """width, height: pixels, 0: not known"""

    media_type: str
    width: int = 0
    height: int = 0


def identify(data: bytes) -> ImageFormat | None:
    """None: none of those that models take."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return ImageFormat("image/png", _big(data[16:20]), _big(data[20:24]))
    if data.startswith((b"GIF87a", b"GIF89a")):
        return ImageFormat("image/gif", _little(data[6:8]), _little(data[8:10]))
    if data.startswith(b"\xff\xd8\xff"):
        return ImageFormat("image/jpeg", *_jpeg_size(data))
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return ImageFormat("image/webp", *_webp_size(data))
    return None


_OTHERS = ((b"BM", "BMP"), (b"II*\0", "TIFF"), (b"MM\0*", "TIFF"), (b"\0\0\1\0", "ICO"), (b"%PDF-", "PDF"))


def name_other(data: bytes) -> str:
    """The format of an image that models do not take, "" if it is no image that is known here."""
    if data[4:8] == b"ftyp" and data[8:12] in (b"avif", b"heic", b"heix", b"mif1"):
        return "HEIC or AVIF"
    if b"<svg" in data[:1024].lower():
        return "SVG"
    return next((name for begin, name in _OTHERS if data.startswith(begin)), "")


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


_NOT_FRAMES = (0xC4, 0xC8, 0xCC)


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """From the first frame header (ITU-T T.81, B.2.2)."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in _NOT_FRAMES:
            return _big(data[at + 7 : at + 9]), _big(data[at + 5 : at + 7])
        else:
            at += 2 + max(_big(data[at + 2 : at + 4]), 2)
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    """From the first chunk (RFC 9649, 2.5 to 2.7)."""
    kind = data[12:16]
    if kind == b"VP8X":
        return _little(data[24:27]) + 1, _little(data[27:30]) + 1
    if kind == b"VP8 ":
        return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
    if kind == b"VP8L":
        bits = _little(data[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return 0, 0
