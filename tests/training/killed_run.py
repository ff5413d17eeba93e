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


def kill_until_done(values: dict[str, Any], folder: Path, kills: int) -> int:
    """Trains to the end, with so many kills at random moments, on machines of any speed.

    Half of them come before the first new state, as it took the time before, the others after some
    new states, when there is something to lose.

    Returns how many processes found states to go on from.
    """
    file, said = folder / "config.json", folder / "said.txt"
    file.write_text(json.dumps(values))
    output = Path(values["output"])
    states = output.with_name(f"{output.name}.incomplete") / "states"
    draw, resumed, seconds = random.Random(0), 0, 5.0
    command = [sys.executable, "-m", "tests.training.killed_run", str(file)]
    for kill in range(kills + 1):
        resumed += any(states.glob("step-*/state.json"))
        with (
            said.open("w") as errors,
            subprocess.Popen(
                command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as process,
        ):
            # It says when what takes the longest, the imports, is over.
            begun = process.stdout is not None and process.stdout.readline() == "begins\n"
            begin = time.monotonic()
            if begun and kill < kills:
                if kill % 2:
                    wait_for_new_states(process, states, 1)
                    seconds = time.monotonic() - begin
                    wait_for_new_states(process, states, draw.randint(0, 2))
                    time.sleep(draw.uniform(0.0, 0.2))
                else:
                    time.sleep(draw.uniform(0.0, seconds))
                process.kill()
            process.wait()
        if process.returncode != (-signal.SIGKILL if kill < kills else 0):
            end = said.read_text()[-2000:]
            raise RuntimeError(f"process {kill} ended with {process.returncode}: {end}")
    return resumed


def wait_for_new_states(process: "subprocess.Popen[str]", states: Path, count: int) -> None:
    """Until there were so many states that were not there, or the process ends."""
    seen, new = set(states.glob("step-*")), 0
    while process.poll() is None and new < count:
        now = set(states.glob("step-*"))
        new, seen = new + len(now - seen), seen | now
        time.sleep(0.01)


def main() -> None:
    """Trains as a file says."""
    from kbert.training.config.any_config import config_from_dict
    from kbert.training.run import train

    config = config_from_dict(json.loads(Path(sys.argv[1]).read_text()))
    sys.stdout.write("begins\n")
    sys.stdout.flush()
    train(config)


if __name__ == "__main__":
    main()
