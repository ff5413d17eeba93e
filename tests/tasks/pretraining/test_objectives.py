"""The objectives of Devlin et al. 2019: section 3.1, and 5.1 for the ablation."""

from kbert.tasks.pretraining.objectives import OBJECTIVES, has_pairs, is_causal


def test_by_hand():
    assert [name for name in OBJECTIVES if is_causal(name)] == ["lm_nsp", "lm"]
    assert [name for name in OBJECTIVES if has_pairs(name)] == ["mlm_nsp", "lm_nsp"]
