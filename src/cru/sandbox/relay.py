"""Runs inside a sandbox, by itself: `relay.py SOCKET PORT COMMAND …` listens on a port of the loopback there, hands what comes to the Unix
socket of cru's proxy, and becomes the command. Nothing of cru is imported, and only what starts fast."""

import _signal  # type: ignore[import-not-found]
import _socket
import _thread
import os
import sys

PIECE = 65536
WAITING = 64


def main() -> None:
    path, port, *argv = sys.argv[1:]
    server = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    server.bind(("127.0.0.1", int(port)))
    server.listen(WAITING)
    child = os.fork()
    if child == 0:
        if os.fork() == 0:  # a grandchild: the command has no child that it does not know
            serve(server, path)
        os._exit(0)
    os.waitpid(child, 0)
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # which this interpreter ignores
        _signal.signal(number, _signal.SIG_DFL)
    os.execvp(argv[0], argv)


def serve(server: _socket.socket, path: str) -> None:
    """It ends with the sandbox, and hears nothing of what asks the command to end."""
    for number in (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM):
        _signal.signal(number, _signal.SIG_IGN)
    nothing = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    while True:
        descriptor, _ = server._accept()  # type: ignore[attr-defined]
        client = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM, 0, descriptor)
        proxy = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            proxy.connect(path)
        except OSError:  # cru is gone
            client.close()
            continue
        _thread.start_new_thread(pump, (client, proxy))
        _thread.start_new_thread(pump, (proxy, client))


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
