"""Fine-tunes an encoder on SQuAD, on a TPU.

    python tpu/finetune_squad.py CONFIG.yaml [--output FOLDER] [--dry-run]

CONFIG.yaml is such as tpu/configs/squad.yaml. `--dry-run` trains on the device that is
there, which shows that data and configuration are right before a TPU is paid for. A run that was
stopped goes on when the same command is given again. The last line printed is the run directory.
"""

import sys

from training_script import run

if __name__ == "__main__":
    sys.exit(run(__doc__, ["question-answering"]))
