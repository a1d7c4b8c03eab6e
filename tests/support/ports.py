"""Free ports on loopback.

Taken from below the kernel's range for outgoing connections, so that nobody gets one by chance
between the look and the use; a run starts at a place of its own.
"""

import os
import socket

_LOWEST, _HIGHEST = 20000, 31900
_next = _LOWEST + (os.getpid() * 61) % (_HIGHEST - _LOWEST)


def _is_free(port):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


def free_port():
    """A port that is free for TCP and UDP and was not given out before in this run."""
    global _next
    for _ in range(_HIGHEST - _LOWEST):
        port = _next
        _next = _next + 1 if _next < _HIGHEST else _LOWEST
        if _is_free(port):
            return port
    raise RuntimeError("no free port on 127.0.0.1")
