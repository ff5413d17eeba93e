#!/usr/bin/env bash
# Sets up an environment for TPUs: on a TPU VM, or anywhere else for tpu/check_tpu.py.
#
#     tpu/setup_vm.sh [FOLDER]        FOLDER is .venv-tpu by default
#
# PYTHON names the interpreter, 3.11 or 3.12.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
folder="${1:-$root/.venv-tpu}"
python="${PYTHON:-python3.11}"

"$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' || {
    echo "setup_vm: PYTHON must be 3.11 or 3.12. Received: $("$python" --version 2>&1)" >&2
    exit 2
}
if [ ! -x "$folder/bin/python" ]; then "$python" -m venv "$folder"; fi
if "$folder/bin/python" -m pip show --quiet tensorflow 2>/dev/null; then
    echo "setup_vm: $folder must not hold the package tensorflow: remove the folder." >&2
    exit 2
fi
"$folder/bin/python" -m pip install --quiet -r "$root/tpu/requirements.txt"
"$folder/bin/python" -m pip install --quiet --no-deps -r "$root/tpu/requirements-no-deps.txt"
"$folder/bin/python" -m pip install --quiet --no-deps --editable "$root"

# On a machine without TPUs libtpu would look for the metadata server of Google Cloud.
if [ ! -e /dev/accel0 ] && [ ! -e /dev/vfio/0 ]; then
    export TPU_SKIP_MDS_QUERY=1 TPU_ACCELERATOR_TYPE=v5litepod-4
    export TPU_WORKER_HOSTNAMES=localhost TPU_WORKER_ID=0
fi
TF_CPP_MIN_LOG_LEVEL=3 "$folder/bin/python" - <<'END'
import importlib.metadata as metadata

import keras
import tensorflow as tf
import tensorflow_text

import kbert

try:
    metadata.version("tensorflow")
    raise SystemExit("setup_vm: the package tensorflow must not be there beside tensorflow-tpu")
except metadata.PackageNotFoundError:
    pass
print(f"kbert {kbert.__version__}, tensorflow-tpu {tf.__version__}, keras {keras.__version__}, "
      f"tensorflow-text {tensorflow_text.__version__}, libtpu {metadata.version('libtpu')}")
END
echo "ready: $folder/bin/python"
