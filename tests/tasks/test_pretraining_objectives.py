"""The objectives of Devlin et al. 2019: section 3.1, and 5.1 for the ablation."""

import subprocess
import sys

from kbert.tasks.pretraining_objectives import OBJECTIVES, has_pairs, is_causal


def test_by_hand():
    assert [name for name in OBJECTIVES if is_causal(name)] == ["lm_nsp", "lm"]
    assert [name for name in OBJECTIVES if has_pairs(name)] == ["mlm_nsp", "lm_nsp"]


def test_they_are_read_without_keras():
    program = "import sys, kbert.tasks.pretraining_objectives\nprint('keras' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
