"""The computed rows of the sizing sheet (dashboards/SIZING.md), from measurements of one sample and
one series: `python -m tests.dashboards.sizing` prints them. For other prices than the assumed ones:
`--processor 300 --memory 40 --disk 1 --bucket 0.25`, each for a year."""

import argparse
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


@dataclass(frozen=True)
class Prices:
    """In dollars a year, assumed: of the order of what clouds ask without a contract."""

    processor: float = 300.0
    memory: float = 40.0
    """A GB."""
    disk: float = 1.0
    """A GB of block storage."""
    bucket: float = 0.25
    """A GB of object storage."""


SERIES_OF_SUMS = 200_000
"""That the rules record without a host, for 20 services of 300 operators in two clusters."""
HOST_SERIES_LEFT = 35
"""Of a host, when its operators are summed before the store."""
SUMS_INTERVAL_S = 60.0
SUMMING_US_PER_SAMPLE = 6.0
"""Assumed, for scraping and adding up without a store; not measured."""
COPIES = 2
"""Of everything but buckets, which keep their own."""


@dataclass(frozen=True)
class Plan:
    """What is kept, and how long."""

    name: str
    hosts_days: float
    """Series of hosts, on disks."""
    hosts_bucket_days: float = 0.0
    """Older ones, in object storage."""
    sums_days: float = 400.0
    aggregated: bool = False
    """Whether operators are summed over hosts before the store (scale/vmagent-aggregation.yml)."""

    def dollars(self, hosts: int, prices: Prices) -> float:
        """A year, for the whole fleet."""
        whole = Size(hosts)
        kept = Size(hosts, HOST_SERIES_LEFT) if self.aggregated else whole
        sums = Size(1, SERIES_OF_SUMS, SUMS_INTERVAL_S)
        processors = kept.processors + sums.processors
        if self.aggregated:
            processors += whole.samples_per_s * SUMMING_US_PER_SAMPLE / 1e6
        memory = (kept.memory_bytes + sums.memory_bytes) / 1e9
        disk = kept.disk_bytes_per_day * self.hosts_days / 1e9
        old = kept.disk_bytes_per_day * self.hosts_bucket_days / 1e9
        old += sums.disk_bytes_per_day * self.sums_days / 1e9
        running = processors * prices.processor + memory * prices.memory + disk * prices.disk
        return COPIES * running + old * prices.bucket

    def row(self, prices: Prices) -> str:
        each = " | ".join(
            f"{self.dollars(hosts, prices) / hosts:,.1f}" for hosts in (100, 1000, 10_000)
        )
        return f"| {self.name} | {each} |"


PLANS = (
    Plan("hosts 15 days on disk, then 75 days in a bucket; sums 400 days", 15, 75),
    Plan("hosts 2 days on disk; sums 400 days", 2),
    Plan("operators summed before the store; the rest 15 days, sums 400 days", 15, aggregated=True),
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


def costs(prices: Prices = Prices()) -> list[str]:
    return [plan.row(prices) for plan in PLANS]


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("processor", "memory", "disk", "bucket"):
        parser.add_argument(f"--{name}", type=float, default=getattr(Prices, name))
    prices = Prices(**vars(parser.parse_args()))
    print("\n".join([*rows(), "", *costs(prices)]))


if __name__ == "__main__":
    main()
