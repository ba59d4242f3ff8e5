"""What a program has recorded into its segment directory."""

from pathlib import Path

from opscope.host.host import Host


def recorded_calls(directory: Path) -> dict[str, int]:
    """Calls by operator; the directory's programs have dropped nothing."""
    snapshot = Host([str(directory)], consume=False, max_series=100_000).collect()
    assert snapshot.bad_segments == {} and snapshot.health.dropped == 0
    found: dict[str, int] = {}
    for key, count in zip(snapshot.keys, snapshot.calls, strict=True):
        found[key.op] = found.get(key.op, 0) + round(float(count))
    return found
