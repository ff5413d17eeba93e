"""Pretrains a BERT on a TPU, on text or on records of `kbert prepare`.

    python tpu/pretrain.py CONFIG.yaml [--output FOLDER] [--dry-run]

CONFIG.yaml is such as tpu/configs/pretrain_base.yaml. `--dry-run` trains on the device that is
there, which shows that data and configuration are right before a TPU is paid for. A run that was
stopped goes on when the same command is given again. The last line printed is the run directory.
"""

import sys

from training_script import run

if __name__ == "__main__":
    sys.exit(run(__doc__, ["pretraining"]))
