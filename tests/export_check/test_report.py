"""What a check found, for programs and for people."""

from pathlib import Path

from kbert.export_check.report import Check, CheckReport

GOOD = Check("ops", note="12 kinds")
BAD = Check("devices", ("f is pinned.", "g is pinned."))
LEFT = Check("session_run", skipped="no compiler")


def report(*checks: Check) -> CheckReport:
    return CheckReport(Path("/m/1"), "2.20", checks, {"bytes": {"graph": 1}})


def test_when_it_passes():
    assert report(GOOD).passed(strict=True)
    assert report(GOOD, LEFT).passed() and not report(GOOD, LEFT).passed(strict=True)
    assert not report(GOOD, BAD).passed()
    assert report(GOOD, BAD, LEFT).problems == ["f is pinned.", "g is pinned."]
    assert report(GOOD, BAD, LEFT).skipped == ["session_run"]


def test_for_programs():
    assert report(GOOD, BAD, LEFT).as_json() == {
        "export": "/m/1",
        "ok": False,
        "server": "2.20",
        "bytes": {"graph": 1},
        "checks": [
            {"name": "ops", "status": "passed", "problems": [], "note": "12 kinds"},
            {"name": "devices", "status": "failed", "problems": ["f is pinned.", "g is pinned."]},
            {"name": "session_run", "status": "skipped", "problems": [], "note": "no compiler"},
        ],
    }
    assert report(LEFT).as_json()["ok"] and not report(LEFT).as_json(strict=True)["ok"]


def test_for_people():
    assert list(report(GOOD, BAD, LEFT).lines()) == [
        "passed   ops: 12 kinds",
        "failed   devices",
        "           - f is pinned.",
        "           - g is pinned.",
        "skipped  session_run: no compiler",
    ]
