"""Folders that AdapterHub's library wrote, and what it computed: see goldens/README.md."""

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

ARCHIVE = Path(__file__).with_name("goldens") / "adapterhub.tar.xz"


def extracted(folder: Path) -> Path:
    """Writes the files into a folder, and returns it."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


def inputs_of(folder: Path) -> dict[str, Any]:
    """What the hidden states were computed from, by the names of kbert's inputs."""
    found = load_file(folder / "inputs.safetensors")
    ids = found["ids"].astype("int32")
    mask = found["mask"].astype(bool)
    return {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": mask}
