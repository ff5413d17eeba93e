"""Objectives of pretraining, and hyperparameters of the BERT paper; imports no Keras."""

OBJECTIVES = ("mlm_nsp", "mlm", "lm_nsp", "lm")
# Devlin et al. 2019, appendix A.2.
LEARNING_RATE, WARMUP_STEPS, TOTAL_STEPS = 1e-4, 10_000, 1_000_000


def is_causal(objective: str) -> bool:
    """Returns whether tokens are predicted from left to right."""
    return objective.startswith("lm")


def has_pairs(objective: str) -> bool:
    """Returns whether the objective includes next sentence prediction."""
    return objective.endswith("_nsp")
