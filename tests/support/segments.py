"""When has the other side read what was sent?

Bytes that a process on this machine has not read yet stand in the receive queue of its socket, and
the kernel tells how many (sock_diag(7)). So a test can send one segment, wait for the moment it was
taken, and send the next, without a pause that hopes for the best.
"""

import ctypes
import os
import socket
import struct
import time

from support.wait import SLOW

_DIAG_BY_FAMILY = 20
_NETLINK_SOCK_DIAG = 4
_PIDFD_OPEN, _PIDFD_GETFD = 434, 438  # the numbers of all machines
_READING = (1, 8)  # ESTABLISHED, CLOSE_WAIT: whoever owns it may still read


class Queues:
    """Asks the kernel about sockets; one per thread."""

    def __init__(self):
        self._link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)

    def close(self):
        self._link.close()

    def unread(self, own, peer):
        """Bytes that wait at the socket with address `own` connected to `peer`; 0: or it is gone."""
        ends = struct.pack("!HH", own[1], peer[1])
        for address in (own[0], peer[0]):
            ends += socket.inet_aton(address).ljust(16, b"\0")
        ends += struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
        body = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xFFF) + ends
        head = struct.pack("=IHHII", 16 + len(body), _DIAG_BY_FAMILY, 1, 1, 0)
        self._link.send(head + body)
        answer = self._link.recv(4096)
        (kind,) = struct.unpack_from("=H", answer, 4)
        if kind != _DIAG_BY_FAMILY:
            return 0  # no such socket any more
        state = answer[17]
        (queued,) = struct.unpack_from("=I", answer, 16 + 4 + 48 + 4)
        return queued if state in _READING else 0

    def wait_read(self, sock, timeout=10.0):
        """Wait until all that was sent on `sock` was read at its other end."""
        own, peer = sock.getsockname(), sock.getpeername()
        deadline = time.monotonic() + timeout * SLOW
        while self.unread(peer, own) != 0:
            if time.monotonic() > deadline:
                raise AssertionError(f"what was sent to {peer} is not read")

    def send(self, sock, pieces):
        """Send each piece when the one before was read. False: the other side closed meanwhile."""
        try:
            for index, piece in enumerate(pieces):
                if index != 0:
                    self.wait_read(sock)
                sock.sendall(piece)
        except OSError:
            return False
        return True


def cut(raw, *places):
    """raw in pieces that end at these places."""
    ends = [0, *places, len(raw)]
    return [raw[a:b] for a, b in zip(ends, ends[1:]) if a != b]


def one_by_one(raw):
    return [raw[i : i + 1] for i in range(len(raw))]


def listeners_of(pid, port):
    """Sockets of another process that listen on a port, as sockets of this one: the same sockets."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file][1:]
    wanted = {f"socket:[{row[9]}]" for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")}
    libc = ctypes.CDLL(None, use_errno=True)
    process = libc.syscall(_PIDFD_OPEN, pid, 0)
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.readlink(f"/proc/{pid}/fd/{name}") in wanted:
                copy = libc.syscall(_PIDFD_GETFD, process, int(name), 0)
                if copy < 0:
                    raise OSError(ctypes.get_errno(), "pidfd_getfd")
                found.append(socket.socket(fileno=copy))
        except FileNotFoundError:
            continue
    os.close(process)
    return found
