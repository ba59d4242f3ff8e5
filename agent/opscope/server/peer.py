"""Which user is at the other end of a TCP connection over loopback.

The kernel lists each socket with the user who created it (/proc/net/tcp, proc(5)); the peer of a
connection on this host, in this network namespace, is the socket with the two addresses exchanged.
While our end is open, no other socket can have that pair of addresses.
"""

from __future__ import annotations

import ipaddress
import struct
from typing import Any

# A socket that its process has closed counts as root's in the list, but is not established.
_ESTABLISHED = "01"
# Users that this user namespace does not know are all shown as this one.
_OVERFLOW_UID = 65534
_NO_INODE = "0"


def user_of(ours: Any, peer: Any, table: str = "") -> int | None:
    """The uid of the user who opened the connection; None if it is unknown, or not over loopback.

    `ours`, `peer`: as `getsockname()` and `getpeername()` return them. `table`: the file to read,
    by default that of the address family.
    """
    here, there = _address(ours), _address(peer)
    if here is None or there is None or here[0].version != there[0].version:
        return None
    is_4 = here[0].version == 4
    wanted = [_hex(*there), _hex(*here)]
    try:
        with open(table or f"/proc/thread-self/net/tcp{'' if is_4 else '6'}") as file:
            for line in file:
                fields = line.split()
                if fields[1:3] == wanted and fields[3] == _ESTABLISHED and fields[9] != _NO_INODE:
                    uid = int(fields[7])
                    return None if uid == _OVERFLOW_UID else uid
    except (OSError, ValueError, IndexError):
        pass
    return None


_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


def _address(name: Any) -> tuple[_Ip, int] | None:
    """A loopback address and its port."""
    try:
        found: _Ip = ipaddress.ip_address(name[0])
    except (ValueError, IndexError, TypeError):
        return None
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return (found, int(name[1])) if found.is_loopback else None


def _hex(address: _Ip, port: int) -> str:
    """As the kernel prints it: words of 32 bits in the machine's byte order."""
    words = struct.unpack(f"={len(address.packed) // 4}I", address.packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
