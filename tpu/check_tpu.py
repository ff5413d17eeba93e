"""Tells whether a configuration would train on a TPU, without one.

    python tpu/check_tpu.py CONFIG.yaml [--chip v5e] [--cores 4] [--json FILE]

Where tensorflow-tpu is installed (tpu/requirements.txt), the step is lowered with TensorFlow's TPU
kernels and compiled by the TPU's compiler; else the report says what was not checked. The exit code
is 0 where the step is accepted, 1 where it is refused, and 2 where the configuration is wrong.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from kbert.tpu_check.tpu_chips import CHIPS, variables_of_a_machine


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks one configuration.

    Args:
        arguments: Those of the command line; None for the process's own.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path, help="a YAML file, such as those in tpu/configs")
    parser.add_argument("--chip", default="v5e", choices=sorted(CHIPS))
    parser.add_argument("--cores", type=int, default=4, help="how many share a batch")
    parser.add_argument("--json", type=Path, help="also write the report to this file")
    given = parser.parse_args(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.update(variables_of_a_machine(CHIPS[given.chip]))
    # Only now: TensorFlow and libtpu read the variables when they are loaded.
    from kbert.tpu_check.check import check_config, report_lines
    from kbert.training.config.any_config import config_from_yaml

    try:
        report = check_config(config_from_yaml(given.config), given.chip, given.cores)
    except (OSError, ValueError) as error:
        print(f"check_tpu: {error}", file=sys.stderr)
        return 2
    print(report_lines(report))
    if given.json is not None:
        found = {"config": given.config.name, **report.to_dict()}
        given.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0 if report.is_accepted else 1


if __name__ == "__main__":
    sys.exit(main())
