"""The network interface between the processes of a run.

gloo looks up the name of its machine to find its own address. That name often has none, or one that
only the machine itself can reach (Debian's 127.0.1.1). The address from which this machine would
call rank 0's is the better choice.
"""

import os
import socket
import struct
import sys
from contextlib import suppress

from stepglass.hardware.ranks import Rank

SIOCGIFADDR = 0x8915  # from <linux/sockios.h>: the IPv4 address of an interface
LOOPBACK = "127."


def choose_interface(here: Rank) -> None:
    """Tell gloo which interface to use, unless somebody has done so."""
    if sys.platform != "linux":
        return
    if here.local_of == here.of:
        name = "lo" if "lo" in (name for _, name in socket.if_nameindex()) else None
    else:
        name = interface_to(os.environ.get("MASTER_ADDR", ""))
    if name is not None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", name)


def interface_to(host: str) -> str | None:
    """The interface that leads to a machine, which may be this one. None if it cannot be told, or
    if it leads to no other machine."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))  # sends nothing
        own = probe.getsockname()[0]
        if own.startswith(LOOPBACK):
            return None
        return next((n for _, n in socket.if_nameindex() if address_of(probe, n) == own), None)
    return None


def address_of(any_socket: socket.socket, name: str) -> str | None:
    import fcntl  # noqa: PLC0415  Windows has none

    with suppress(OSError):  # it has no IPv4 address
        request = struct.pack("256s", name.encode()[:15])
        answer = fcntl.ioctl(any_socket.fileno(), SIOCGIFADDR, request)
        return socket.inet_ntoa(answer[20:24])
    return None
