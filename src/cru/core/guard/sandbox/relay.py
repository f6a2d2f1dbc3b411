"""Runs inside a sandbox, by itself: `relay.py SOCKET PORT FORWARDS COMMAND …` listens on a port of the loopback there, hands what comes to
the Unix socket of cru's proxy, and becomes the command. FORWARDS are places such as `localhost:8765` at which it listens, too; what comes
there is led to the same place outside. Nothing of cru is imported, and only what starts fast."""

import _signal  # type: ignore[import-not-found]
import _socket
import _thread
import os
import sys

PIECE = 65536
WAITING = 64


def main() -> None:
    path, port, forwards, *argv = sys.argv[1:]
    servers = [(listen(_socket.AF_INET, "127.0.0.1", int(port)), b"")]
    for place in filter(None, forwards.split(",")):
        servers += listen_for(place)
    child = os.fork()
    if child == 0:
        if os.fork() == 0:  # a grandchild: the command has no child that it does not know
            serve_all(servers, path)
        os._exit(0)
    os.waitpid(child, 0)
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # which this interpreter ignores
        _signal.signal(number, _signal.SIG_DFL)
    os.execvp(argv[0], argv)


def listen(family: int, address: str, port: int) -> _socket.socket:
    server = _socket.socket(family, _socket.SOCK_STREAM)
    server.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    server.bind((address, port))
    server.listen(WAITING)
    return server


def listen_for(place: str) -> list[tuple[_socket.socket, bytes]]:
    """What listens at this place, and what is sent to the proxy first."""
    host, _, port = place.rpartition(":")
    head = f"CONNECT {place} HTTP/1.1\r\n\r\n".encode()
    servers = []
    for family, address in ((_socket.AF_INET, "127.0.0.1"), (_socket.AF_INET6, "::1")):
        if host in ("localhost", address, f"[{address}]"):
            try:
                servers.append((listen(family, address, int(port)), head))
            except OSError as error:  # no IPv6, or a port that only root may have
                if family == _socket.AF_INET:
                    sys.stderr.write(f"cru: {place} of `hosts` cannot be reached in the sandbox: {error.strerror}\n")
    return servers


def serve_all(servers: list[tuple[_socket.socket, bytes]], path: str) -> None:
    """They end with the sandbox, and hear nothing of what asks the command to end."""
    for number in (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM):
        _signal.signal(number, _signal.SIG_IGN)
    nothing = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    for server, head in servers[1:]:
        _thread.start_new_thread(serve, (server, path, head))
    serve(servers[0][0], path, b"")


def serve(server: _socket.socket, path: str, head: bytes) -> None:
    while True:
        descriptor, _ = server._accept()  # type: ignore[attr-defined]
        client = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM, 0, descriptor)
        _thread.start_new_thread(relay, (client, path, head))


def relay(client: _socket.socket, path: str, head: bytes) -> None:
    proxy = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        proxy.connect(path)
        if head and not is_let_through(proxy, head):
            raise OSError("refused")
    except OSError:  # cru is gone, or nobody listens outside
        client.close()
        proxy.close()
        return
    _thread.start_new_thread(pump, (client, proxy))
    pump(proxy, client)


def is_let_through(proxy: _socket.socket, head: bytes) -> bool:
    proxy.sendall(head)
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):  # byte by byte: what follows is the server's
        piece = proxy.recv(1)
        if not piece:
            return False
        answer += piece
    return answer.startswith(b"HTTP/1.1 200 ")


def pump(source: _socket.socket, target: _socket.socket) -> None:
    try:
        while data := source.recv(PIECE):
            target.sendall(data)
    except OSError:  # one side is gone: the other one sees the end
        pass
    try:
        target.shutdown(_socket.SHUT_WR)
    except OSError:
        pass


if __name__ == "__main__":
    main()
