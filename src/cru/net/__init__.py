"""One HTTP transport: bytes out, a stream of bytes in."""
