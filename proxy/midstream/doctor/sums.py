"""Adds up what the addons counted, where, and how much of it the capture says was mended."""

from collections import Counter
from collections.abc import Mapping

from midstream.adapters.capture_format import StoredRecord
from midstream.core.addon import AnyAddon
from midstream.doctor.report import Declined, Fault, Finding, Rule, Seen
from midstream.doctor.words import fault_meaning, mend
from midstream.explaining import meaning

type Doing = tuple[int, str]
"""An exchange, and an addon that did something there."""


class Deeds:
    """What one capture says was done by midstream while it was made."""

    def __init__(self) -> None:
        self.mended: set[Doing] = set()
        self.left_alone: Counter[Doing] = Counter()

    def record(self, record: StoredRecord) -> None:
        """Take a record: in observe mode it has rules, and nothing was sent in its place."""
        if record.sent is not None:
            self.mended |= {(record.exchange, addon) for addon, _ in record.rules}

    def counted(self, record: StoredRecord, addon: str, amount: int) -> None:
        """Take what observe mode counts at a record that the addon once declined."""
        names = {name for name, _ in record.rules}
        if addon not in names and any(name == addon for name, _ in record.skips):
            self.left_alone[record.exchange, addon] += amount

    def settle(self, capture: int, addon: str, seen: Seen) -> None:
        """Note in the places of this capture how much was mended."""
        for place in seen.places:
            doing = place.exchange, addon
            if place.capture == capture and doing in self.mended:
                place.mended = max(place.count - self.left_alone[doing], 0)


class Sums:
    """What the addons counted in all captures."""

    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}
        self._rules: Counter[tuple[str, str]] = Counter()
        self._declined: Counter[tuple[str, str]] = Counter()
        self.failures: Counter[str] = Counter()

    def counted(
        self, capture: int, record: StoredRecord, exchange: int, words: tuple[str, ...], amount: int
    ) -> None:
        """Count a rule of an addon."""
        addon, rule = words
        self._rules[addon, rule] += amount
        if amount:
            seen = self._seen.setdefault(addon, Seen())
            seen.note(capture, exchange, record.seq, record.wall_ns, amount)

    def declined(self, words: tuple[str, ...]) -> None:
        """Count a reason of an addon."""
        addon, reason = words
        self._declined[addon, reason] += 1

    def settle(self, capture: int, deeds: Deeds) -> None:
        """Note what was mended in a capture that has been read."""
        for addon, seen in self._seen.items():
            deeds.settle(capture, addon, seen)

    def faults(self, addons: Mapping[str, AnyAddon]) -> list[Fault]:
        """Return the faults in the order in which the addons run."""
        return [
            Fault(name, fault_meaning(addon), mend(name), self._words(addon), self._seen[name])
            for name, addon in addons.items()
            if name in self._seen
        ]

    def left_alone(self) -> list[Declined]:
        """Return what was declined, most often first."""
        return [
            Declined(addon, reason, count, meaning(addon, reason))
            for (addon, reason), count in self._declined.most_common()
        ]

    def _words(self, addon: AnyAddon) -> list[Rule]:
        return [
            Rule(rule, count, meaning(addon.name, rule))
            for (name, rule), count in self._rules.items()
            if name == addon.name and count
        ]


def settle_findings(capture: int, deeds: Deeds, findings: list[Finding]) -> None:
    """Note what was mended of the findings that an addon mends."""
    for finding in findings:
        if finding.mends:
            deeds.settle(capture, finding.mends, finding.seen)
