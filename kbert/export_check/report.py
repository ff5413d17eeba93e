"""Report of the checks of an export."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Check:
    """One check, with a sentence for each problem; `skipped` says why it was not run."""

    name: str
    problems: tuple[str, ...] = ()
    skipped: str = ""
    note: str = ""

    @property
    def status(self) -> str:
        """Returns "passed", "failed" or "skipped"."""
        return "failed" if self.problems else "skipped" if self.skipped else "passed"

    def as_json(self) -> dict[str, Any]:
        """Returns the check for `kbert check`, in JSON types."""
        note = self.skipped or self.note
        return {
            "name": self.name,
            "status": self.status,
            "problems": list(self.problems),
            **({"note": note} if note else {}),
        }


@dataclass(frozen=True)
class CheckReport:
    """All checks of one export for a version of TF Serving, with sizes and versions as `facts`."""

    path: Path
    server: str
    checks: tuple[Check, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        """Returns the problems of all checks."""
        return [problem for check in self.checks for problem in check.problems]

    @property
    def skipped(self) -> list[str]:
        """Returns the names of the checks that were not run."""
        return [check.name for check in self.checks if check.status == "skipped"]

    def passed(self, strict: bool = False) -> bool:
        """Returns whether there are no problems, nor, if `strict`, checks that were not run."""
        return not self.problems and not (strict and self.skipped)

    def as_json(self, strict: bool = False) -> dict[str, Any]:
        """Returns the report for `kbert check`, in JSON types; for `strict` see `passed`."""
        return {
            "export": str(self.path),
            "ok": self.passed(strict),
            "server": self.server,
            **self.facts,
            "checks": [check.as_json() for check in self.checks],
        }

    def lines(self) -> Iterator[str]:
        """Yields the lines of a readable list."""
        for check in self.checks:
            note = check.skipped or check.note
            yield f"{check.status:<8} {check.name}{f': {note}' if note else ''}"
            yield from (f"           - {problem}" for problem in check.problems)
