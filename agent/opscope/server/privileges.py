"""Drop root privileges that the agent does not need.

It keeps reading files of all users (CAP_DAC_READ_SEARCH), removing files from directories of other
users (CAP_DAC_OVERRIDE, CAP_FOWNER) and, if configured, listening on a port below 1024. The drop is
permanent: no program that it starts can gain more. It must run before the agent starts threads,
since threads keep the privileges of their start. The unit and the manifests in agent/deploy
declare the same set. Facts: capabilities(7), capset(2), prctl(2), <linux/capability.h>.
"""

from __future__ import annotations

import ctypes
import os

_PR_SET_NO_NEW_PRIVS = 38
_VERSION_3 = 0x20080522
KEPT = {"CAP_DAC_OVERRIDE": 1, "CAP_DAC_READ_SEARCH": 2, "CAP_FOWNER": 3}
_NET_BIND_SERVICE = 10


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Set(ctypes.Structure):
    _fields_ = [
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    ]


def drop(*, keep_low_ports: bool = False) -> bool:
    """Drops privileges; whether it succeeded. Never adds any; harmless without privileges."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        is_done = libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        header, sets = _Header(_VERSION_3, 0), (_Set * 2)()
        if libc.capget(ctypes.byref(header), sets) != 0:
            return False
        wanted = sum(1 << number for number in KEPT.values())
        if keep_low_ports:
            wanted |= 1 << _NET_BIND_SERVICE
        for one, mask in zip(sets, (wanted, 0), strict=True):
            one.permitted &= mask
            one.effective = one.permitted
            one.inheritable = 0
        is_done = libc.capset(ctypes.byref(header), sets) == 0 and is_done
        return bool(is_done)
    except (AttributeError, OSError):
        return os.geteuid() != 0
