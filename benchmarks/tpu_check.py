"""Checks the configurations of tpu/configs for a TPU without one, and writes what was found.

    python benchmarks/tpu_check.py PYTHON [CONFIG ...] [--chip v5e] [--cores 4]

PYTHON is the interpreter of an environment of tpu/setup_vm.sh. Each configuration is checked in a
process of its own by tpu/check_tpu.py; the results go to benchmarks/results/tpu_check.json, which
keeps what was found earlier of other configurations. The exit code is 1 where one is refused.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CONFIGS = ("pretrain_base", "translation_base", "glue_mnli", "squad")
RESULTS = ROOT / "benchmarks" / "results" / "tpu_check.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks some configurations.

    Args:
        arguments: Those of the command line; None for the process's own.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", help="an interpreter with tensorflow-tpu")
    parser.add_argument("configs", nargs="*", default=CONFIGS, help="names in tpu/configs")
    parser.add_argument("--chip", default="v5e")
    parser.add_argument("--cores", default="4")
    given = parser.parse_args(arguments)
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    accepted = True
    for name in given.configs:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder, "report.json")
            command = [given.python, ROOT / "tpu" / "check_tpu.py"]
            command += [ROOT / "tpu" / "configs" / f"{name}.yaml", "--json", report]
            command += ["--chip", given.chip, "--cores", given.cores]
            done = subprocess.run(command, cwd=ROOT, check=False)
            accepted = accepted and done.returncode == 0
            if report.is_file():
                found[name] = json.loads(report.read_text())
                RESULTS.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0 if accepted else 1


if __name__ == "__main__":
    sys.exit(main())
