from __future__ import annotations

import pytest

from cru.core.base.net import BadUrl, ConnectionLost, is_loopback, split_url
from cru.core.base.net.loopback import BodyDecoder, encode_head, parse_head

CHUNKED = {"transfer-encoding": "chunked"}
BODY = b"5\r\nhello\r\n1;ext=x\r\n \r\n0A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"


def feed(body: BodyDecoder, *pieces: bytes) -> bytes:
    return b"".join(body.feed(piece) for piece in pieces)


def test_a_chunked_body_is_the_same_however_it_is_cut() -> None:
    for cut in range(len(BODY) + 1):
        body = BodyDecoder(200, CHUNKED)
        assert feed(body, BODY[:cut], BODY[cut:]) == b"hello 0123456789", cut
        assert body.done
        assert not body.leftover
    body = BodyDecoder(200, CHUNKED)
    assert feed(body, *(BODY[i : i + 1] for i in range(len(BODY)))) == b"hello 0123456789"
    assert body.done


def test_an_end_in_the_middle_is_a_lost_connection() -> None:
    for cut in range(len(BODY)):
        body = BodyDecoder(200, CHUNKED)
        body.feed(BODY[:cut])
        with pytest.raises(ConnectionLost):
            body.end()
    short = BodyDecoder(200, {"content-length": "5"})
    assert short.feed(b"abc") == b"abc"
    with pytest.raises(ConnectionLost):
        short.end()


def test_a_body_ends_by_its_length_or_with_the_connection() -> None:
    sized = BodyDecoder(200, {"content-length": "3"})
    assert (sized.feed(b"abcd"), sized.done, sized.leftover) == (b"abc", True, True)
    open_ended = BodyDecoder(200, {})
    assert (open_ended.feed(b"abc"), open_ended.done) == (b"abc", False)
    open_ended.end()
    assert open_ended.done
    assert BodyDecoder(204, {}).done
    assert BodyDecoder(200, {"content-length": "0"}).done


def test_broken_framing_and_other_protocols_are_told() -> None:
    with pytest.raises(ConnectionLost, match="chunked"):
        BodyDecoder(200, CHUNKED).feed(b"xyz\r\n")
    with pytest.raises(ConnectionLost, match="does not speak HTTP"):
        parse_head(b"SSH-2.0-OpenSSH")


def test_a_head_is_read_with_lower_case_names() -> None:
    assert parse_head(b"HTTP/1.1 429 Too Many\r\nRetry-After: 3\r\nX:y") == (429, {"retry-after": "3", "x": "y"})
    assert parse_head(b"HTTP/1.0 200") == (200, {})


def test_a_header_cannot_smuggle_another_one_in() -> None:
    with pytest.raises(BadUrl, match="line break"):
        encode_head("POST", split_url("http://h/"), {"authorization": "Bearer x\r\nevil: 1"}, 0)


@pytest.mark.parametrize(
    "url", ["", "h", "ftp://h/", "http://", "http://h:x/", "http://u:p@h/", "http://h/a b", "file:///etc/passwd"]
)
def test_what_is_not_a_plain_http_url_is_refused(url: str) -> None:
    with pytest.raises(BadUrl):
        split_url(url)


def test_urls_are_taken_apart() -> None:
    url = split_url("http://[::1]:8080/a/b?c=d")
    assert (url.scheme, url.host, url.port, url.target, url.authority) == (
        "http",
        "::1",
        8080,
        "/a/b?c=d",
        "[::1]:8080",
    )
    assert split_url("https://h").port == 443
    assert split_url("https://h?q").target == "/?q"


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("localhost", True),
        ("::1", True),
        ("127.0.0.1.evil.example", False),
        ("10.0.0.1", False),
    ],
)
def test_only_this_machine_is_loopback(host: str, local: bool) -> None:
    assert is_loopback(host) is local


@pytest.mark.parametrize("line", [b"-5", b"+5", b"1_0", b"0x5", b"", b"f" * 40, b"\xb2"])
def test_a_chunk_size_is_hex_digits_and_nothing_else(line: bytes) -> None:
    with pytest.raises(ConnectionLost, match="chunked encoding"):
        BodyDecoder(200, CHUNKED).feed(line + b"\r\nhello\r\n")


@pytest.mark.parametrize("status", ["²00", "2", "2000", "-20", "9" * 5000])
def test_a_status_is_three_digits(status: str) -> None:
    with pytest.raises(ConnectionLost, match="does not speak HTTP"):
        parse_head(f"HTTP/1.1 {status} OK".encode("latin-1"))


@pytest.mark.parametrize("length", ["²", "9" * 5000, "-1"])
def test_a_length_that_is_no_number_means_up_to_the_end(length: str) -> None:
    body = BodyDecoder(200, {"content-length": length})
    assert body.feed(b"hello") == b"hello" and not body.done
    body.end()
    assert body.done


@pytest.mark.parametrize("start", [b"", b"5\r\nhello\r\n", b"5;x="])
def test_a_size_line_without_end_is_not_read_without_end(start: bytes) -> None:
    """Each feed would copy all that came before it."""
    decoder, fed = BodyDecoder(200, CHUNKED), 0
    with pytest.raises(ConnectionLost, match="chunked encoding"):
        for _ in range(1000):
            decoder.feed(start or b"0" * 64)
            start = b""
            fed += 64
    assert fed < 8192


def test_a_size_line_may_be_long_and_come_in_any_pieces() -> None:
    body = b"5;" + b"x" * 4000 + b"\r\nhello\r\n0\r\n" + b"trailer: x\r\n" * 100 + b"\r\n"
    for size in (1, 7, 1000, len(body)):
        decoder = BodyDecoder(200, CHUNKED)
        assert b"".join(decoder.feed(body[i : i + size]) for i in range(0, len(body), size)) == b"hello"
        assert decoder.done and not decoder.leftover


def test_trailers_without_end_have_one() -> None:
    decoder = BodyDecoder(200, CHUNKED)
    decoder.feed(b"0\r\n")
    with pytest.raises(ConnectionLost):
        for _ in range(70_000):
            decoder.feed(b"a: b\r\n")
    assert not decoder.done
