"""One HTTP transport: bytes out, a stream of bytes in.

What may go wrong between here and a server.
"""

from __future__ import annotations

from cru.values.errors import CruError


class NetError(CruError):
    """A request got no (whole) answer. No message holds headers or bodies, so none holds a key.

    NetError
    ├── BadUrl          not an absolute http(s) URL, or a header that cannot be sent
    ├── ConnectFailed   nobody answers, the name is unknown, the certificate is not trusted
    ├── ConnectionLost  the connection broke before the answer was whole
    ├── TimedOut        nothing arrived for too long
    └── TooManyRedirects
    """


class BadUrl(NetError):
    pass


class ConnectFailed(NetError):
    pass


class ConnectionLost(NetError):
    pass


class TimedOut(NetError):
    pass


class TooManyRedirects(NetError):
    pass
