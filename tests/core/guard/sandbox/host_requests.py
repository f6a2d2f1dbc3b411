"""What a confined program may try with the proxy of hosts: each row is sent as it stands, and judged by what comes back.

{port} is a server on this machine that no rule names, {named} one that a rule names, {name} a name of this machine's own.
"""

from __future__ import annotations

REFUSED = {
    "a host that nobody named": (
        b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n",
        b"403 evil.example is not among `hosts`",
    ),
    "this machine": (b"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n", b"403"),
    "this machine in another spelling": (b"CONNECT 0x7f.1:{port} HTTP/1.1\r\n\r\n", b"403 127.0.0.1"),
    "this machine in full-width digits": ("CONNECT １２７.0.0.1:443 HTTP/1.1\r\n\r\n".encode(), b"400"),
    "this machine, percent-encoded": (b"CONNECT %31%32%37.0.0.1:443 HTTP/1.1\r\n\r\n", b"403 127.0.0.1"),
    "this machine as IPv6": (b"CONNECT [::1]:{port} HTTP/1.1\r\n\r\n", b"403 [::1]"),
    "this machine as IPv4 in IPv6": (b"CONNECT [::ffff:127.0.0.1]:{port} HTTP/1.1\r\n\r\n", b"403"),
    "credentials of a cloud": (b"GET http://169.254.169.254/latest HTTP/1.1\r\n\r\n", b"403"),
    "another port of a named host": (b"CONNECT 127.0.0.2:{port} HTTP/1.1\r\n\r\n", b"403 127.0.0.2:{port}"),
    "a port that is not of the web": (b"CONNECT known.example:22 HTTP/1.1\r\n\r\n", b"403 known.example:22"),
    "a name that leads inside": (
        b"CONNECT a.wild.example:443 HTTP/1.1\r\n\r\n",
        b"403 a.wild.example leads to 127.0.0.1",
    ),
    "a written name that leads to this machine": (
        b"CONNECT known.example:443 HTTP/1.1\r\n\r\n",
        b"403 known.example leads to",
    ),
    "the apex of a wildcard": (b"CONNECT wild.example:443 HTTP/1.1\r\n\r\n", b"403 wild.example is not"),
    "a name that ends like a named one": (b"CONNECT notknown.example:443 HTTP/1.1\r\n\r\n", b"403"),
    "a name with a named one in front": (b"CONNECT known.example.evil.example:443 HTTP/1.1\r\n\r\n", b"403"),
    "a user before the host": (b"GET http://known.example@evil.example/ HTTP/1.1\r\n\r\n", b"400"),
    "a backslash before the host": (b"GET http://evil.example\\@known.example/ HTTP/1.1\r\n\r\n", b"403 evil.example"),
    "a fragment before the host": (b"GET http://evil.example#@known.example/ HTTP/1.1\r\n\r\n", b"403 evil.example"),
    "garbage": (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"400"),
    "CONNECT with garbage": (b"CONNECT ::::\x00 HTTP/1.1\r\n\r\n", b"400"),
    "CONNECT with a path": (b"CONNECT http://known.example/ HTTP/1.1\r\n\r\n", b"400"),
    "CONNECT to nothing": (b"CONNECT  HTTP/1.1\r\n\r\n", b"400"),
    "a path alone": (b"GET / HTTP/1.1\r\nHost: known.example\r\n\r\n", b"400"),
    "TLS to the proxy's own": (b"GET https://known.example/ HTTP/1.1\r\n\r\n", b"400"),
    "another scheme": (b"GET ftp://known.example/ HTTP/1.1\r\n\r\n", b"400"),
    "a newline in the target": (b"GET http://known.example/\nHost: evil HTTP/1.1\r\n\r\n", b"400"),
    "a head without end": (b"GET http://known.example/ HTTP/1.1\r\n" + b"a: b\r\n" * 20_000, b"400"),
    "a folded header": (b"GET http://127.0.0.2:{named}/ HTTP/1.1\r\na: b\r\n c: d\r\n\r\n", b"400"),
    "a header with a bare newline": (b"GET http://127.0.0.2:{named}/ HTTP/1.1\r\na: b\nhost: evil\r\n\r\n", b"400"),
    "two lengths": (
        b"POST http://127.0.0.2:{named}/ HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"400",
    ),
    "a length that is none": (b"POST http://127.0.0.2:{named}/ HTTP/1.1\r\ncontent-length: -1\r\n\r\n", b"400"),
    "a body without a length": (
        b"POST http://127.0.0.2:{named}/ HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
        b"400",
    ),
}
"""Rows: what is sent, what the answer has behind `HTTP/1.1 `."""

BAD_RULES = {
    "*": "network = true",
    "*.com": "far too many",
    "*.1.1": "far too many",
    "https://pypi.org": "is no host",
    "pypi.org/simple": "is no host",
    "PyPI.org": "is no host",
    "a b": "is no host",
    "": "is no host",
    "pypi.org:99999": "is no host",
    "a.*.org": "is no host",
    "пример.рф": "is no host",
}
