"""The computed rows of the sizing sheet (dashboards/SIZING.md), from measurements of one sample and
one series: `python -m tests.dashboards.sizing` prints them."""

from dataclasses import dataclass

# Results of tests/dashboards/scale.py with native histograms; the sheet has the dates.
CPU_US_PER_SAMPLE = 16.0
"""CPU time, including rules, and including the start, which creates all series."""
RESIDENT_BYTES_PER_SERIES = 10_000.0
"""Maximum, including garbage and the rules' series."""
BYTES_PER_SAMPLE = 29.0
INDEX_BYTES_PER_SERIES = 100.0
BLOCK_S = 7200.0
"""Each block has its own index."""
DAY_S = 86400.0

HOSTS = (100, 1000, 10_000, 100_000)


@dataclass(frozen=True)
class Size:
    hosts: int
    series_of_host: int = 2000
    interval_s: float = 15.0

    @property
    def series(self) -> float:
        return self.hosts * self.series_of_host

    @property
    def samples_per_s(self) -> float:
        return self.series / self.interval_s

    @property
    def processors(self) -> float:
        return self.samples_per_s * CPU_US_PER_SAMPLE / 1e6

    @property
    def memory_bytes(self) -> float:
        return self.series * RESIDENT_BYTES_PER_SERIES

    @property
    def disk_bytes_per_day(self) -> float:
        """Before blocks are merged, which also merges their indexes."""
        index = self.series * INDEX_BYTES_PER_SERIES * DAY_S / BLOCK_S
        return self.samples_per_s * DAY_S * BYTES_PER_SAMPLE + index

    def row(self) -> str:
        return (
            f"| {self.hosts:,} | {_short(self.series)} | {_short(self.samples_per_s)} |"
            f" {_two_digits(self.processors):,.10g} | {_bytes(self.memory_bytes)} |"
            f" {_bytes(self.disk_bytes_per_day)} |"
        )


def _short(number: float) -> str:
    """Rounds to two digits: it is an estimate."""
    for unit, name in ((1e6, " million"), (1, "")):
        if number >= unit:
            return f"{_two_digits(number / unit):,.10g}{name}"
    return f"{number:.2g}"


def _bytes(number: float) -> str:
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1, "bytes")):
        if number >= unit:
            return f"{_two_digits(number / unit):,.10g} {name}"
    return f"{number:.0f} bytes"


def _two_digits(number: float) -> float:
    return float(f"{number:.2g}")


def rows(interval_s: float = 15.0) -> list[str]:
    return [Size(hosts, interval_s=interval_s).row() for hosts in HOSTS]


if __name__ == "__main__":
    print("\n".join(rows()))
