"""The identity of a process beside its service: resource attributes, job and rank.

Processes of a service with equal attributes form one group and are counted together. Each other
group has series of its own under the group's name, a digest of its attributes. The ranks of a job
form one group unless ranks are requested, and so do containers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from opscope.attachment.program import ATTRIBUTES_LIMIT, JOB_NOTE, RANK_NOTES, RESOURCE_NOTE
from opscope.segments.dictionary import Labels

_NAME_BYTES = 6


def attributes(notes: Mapping[str, str], *, ranks: bool) -> Labels:
    """The attributes that distinguish a process with these notes within its service, sorted."""
    found = {
        key.removeprefix(RESOURCE_NOTE): value
        for key, value in sorted(notes.items())
        if key.startswith(RESOURCE_NOTE)
    }
    wanted = (JOB_NOTE, *RANK_NOTES) if ranks else (JOB_NOTE,)
    found = {**{key: notes[key] for key in wanted if notes.get(key)}, **found}
    return tuple(sorted([*found.items()][: ATTRIBUTES_LIMIT + len(wanted)]))


def group_of(attributes: Labels) -> str:
    """The name of the group with these attributes, equal on every host; "" without attributes."""
    if not attributes:
        return ""
    raw = json.dumps(attributes).encode()
    return hashlib.blake2b(raw, digest_size=_NAME_BYTES).hexdigest()
