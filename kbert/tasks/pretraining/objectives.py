"""What pretraining may learn, and the numbers that its paper gives; read without Keras."""

OBJECTIVES = ("mlm_nsp", "mlm", "lm_nsp", "lm")
# Devlin et al. 2019, appendix A.2.
LEARNING_RATE, WARMUP_STEPS, TOTAL_STEPS = 1e-4, 10_000, 1_000_000


def is_causal(objective: str) -> bool:
    """Whether tokens are predicted from left to right.

    Args:
        objective: One of `OBJECTIVES`.
    """
    return objective.startswith("lm")


def has_pairs(objective: str) -> bool:
    """Whether it is also learned which sentence follows which.

    Args:
        objective: One of `OBJECTIVES`.
    """
    return objective.endswith("_nsp")
