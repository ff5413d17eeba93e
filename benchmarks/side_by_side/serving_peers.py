"""Other servers under the load that `kbert serve` is put under."""

import sys
from pathlib import Path
from typing import Any

from side_by_side.serving_models import Rows
from side_by_side.serving_process import running
from side_by_side.serving_requests import load, over_rest

CLIENTS = (1, 8, 64)
PEERS = {  # way -> its server, the folder of its models, whether our Python runs it
    "ONNX Runtime": ("peers.onnxruntime_server", "onnx", True),
    "FastAPI": ("peers.torch_server", "huggingface", False),
}


def beside(
    way: str, task: str, folder: Path, peer_python: str, rows: Rows, seconds: float
) -> dict[int, Any]:
    """The same load on a peer: clients -> figures; none where it cannot run."""
    server, models, runs_here = PEERS[way]
    command = [sys.executable if runs_here else peer_python, "-m", server]
    command += [task, str(folder / models / task)]
    try:
        with running(command, folder / "peer.log") as process:
            ask = over_rest(process.rest, task)
            for one in rows[:20]:
                ask([one])
            return {clients: load(ask, rows, clients, seconds) for clients in CLIENTS}
    except RuntimeError as error:
        print(f"{way} was not run: {error}", file=sys.stderr)
        return {}
