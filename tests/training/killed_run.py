"""A training in a process of its own, killed again and again until it is finished.

    python -m tests.training.killed_run CONFIG.json

trains as the file says; `kill_until_done` starts that and kills it at random moments.
"""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]


def kill_until_done(
    values: dict[str, Any], folder: Path, kills: int, seconds: float = 12.0
) -> int:
    """Trains to the end, with so many kills, each within some seconds of the beginning.

    Returns how many processes found states to go on from.
    """
    file, output = folder / "config.json", Path(values["output"])
    file.write_text(json.dumps(values))
    states = output.with_name(f"{output.name}.incomplete") / "states"
    draw, resumed = random.Random(0), 0
    for kill in range(kills + 1):
        resumed += any(states.glob("step-*/state.json"))
        command = [sys.executable, "-m", "tests.training.killed_run", str(file)]
        with subprocess.Popen(
            command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            if kill < kills:
                # It says when what takes the longest, the imports, is over.
                if not process.stdout or process.stdout.readline() != "begins\n":
                    raise RuntimeError("the process ended before it began")
                # Half of them come early, the others when there is something new to lose.
                if kill % 2:
                    wait_for_another_state(process, states)
                    time.sleep(draw.uniform(0.0, 2.0))
                else:
                    time.sleep(draw.uniform(0.0, seconds))
                process.send_signal(signal.SIGKILL)
            process.wait()
        if process.returncode == 0:
            break
    if process.returncode != 0:
        raise RuntimeError(f"the last process ended with {process.returncode}")
    return resumed


def wait_for_another_state(process: "subprocess.Popen[str]", states: Path) -> None:
    """Until there is a state that was not there, or the process ends."""
    before = set(states.glob("step-*"))
    while process.poll() is None and not set(states.glob("step-*")) - before:
        time.sleep(0.01)


def main() -> None:
    """Trains as a file says."""
    from kbert.training.any_config import config_from_dict
    from kbert.training.pretraining_config import PretrainingConfig
    from kbert.training.pretraining_run import pretrain
    from kbert.training.run import train

    config = config_from_dict(json.loads(Path(sys.argv[1]).read_text()))
    sys.stdout.write("begins\n")
    sys.stdout.flush()
    if isinstance(config, PretrainingConfig):
        pretrain(config)
    else:
        train(config)


if __name__ == "__main__":
    main()
