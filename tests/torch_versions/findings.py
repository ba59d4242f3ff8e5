"""What is found about one version of PyTorch, and how pytest's report of its tests is read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree


@dataclass
class Trial:
    """What trial.py finds in a process that imports that PyTorch."""

    reason: str = ""
    """Why the bridge does not attach; empty if it does."""
    without: str = ""
    """Parts of the bridge that do not work with this version, with the reason."""
    calls: int = 0
    """That torch.profiler counts in the training loop."""
    differences: dict[str, list[int]] = field(default_factory=dict)
    """Of operators whose calls differ: the recorder's count and the profiler's."""
    python: str = ""
    torch: str = ""
    """With the part after a plus sign."""


@dataclass(frozen=True)
class Outcomes:
    """How the tests end, by their names."""

    passed: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()

    @classmethod
    def of_all(cls, runs: Sequence["Outcomes"]) -> "Outcomes":
        passed = frozenset[str]().union(*(run.passed for run in runs))
        failed = frozenset[str]().union(*(run.failed for run in runs))
        return cls(passed, failed, frozenset[str]().union(*(run.skipped for run in runs)))

    def again(self, second: "Outcomes") -> "Outcomes":
        """This run, with what failed in it as it ended when it ran a second time by itself."""
        return Outcomes(self.passed | second.passed, second.failed, self.skipped | second.skipped)


def read_report(xml: str) -> Outcomes:
    """What pytest writes with --junitxml. A test that ends in an error has failed."""
    ended: dict[str, set[str]] = {"passed": set(), "failed": set(), "skipped": set()}
    for case in ElementTree.fromstring(xml).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        kinds = {child.tag for child in case}
        is_failed = kinds & {"failure", "error"}
        kind = "failed" if is_failed else "skipped" if "skipped" in kinds else "passed"
        ended[kind].add(name)
    ended["passed"] -= ended["failed"]  # an error in its end comes as a case of its own
    return Outcomes(**{kind: frozenset(names) for kind, names in ended.items()})
