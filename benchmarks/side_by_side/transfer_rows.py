"""The rows of the table of transfer: ways to learn a task from an encoder, by `kbert train`."""

from dataclasses import dataclass

ENCODER = "all-MiniLM-L6-v2"
ADAPTED = ("mnli", "qnli", "sick")  # the adapters of the fusion
_FULL = {"learning-rate": "1e-4", "epochs": "5"}
_FEATURES = {"features": "last4-concat", "feature-cache": "{runs}/states"}
_ADAPTER = {"adapter": "pfeiffer", "learning-rate": "1e-3", "epochs": "10"}


@dataclass(frozen=True)
class Row:
    """A way to learn a task; `{runs}` in its options is the folder of all runs.

    Attributes:
        options: Options of `kbert train classification`, or of `kbert train multi-task`.
        needs: Names of `STAGES` that are trained before.
        beside: Tasks that train together with the target.
    """

    options: dict[str, str]
    needs: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    encoder: str = ENCODER
    targets: tuple[str, ...] = ("rte",)


STAGES = {
    **{f"adapter-{name}": Row(_ADAPTER, targets=(name,)) for name in ADAPTED},
    "snli-mnli": Row({"learning-rate": "1e-4", "epochs": "1"}, targets=("snli-mnli",)),
}
EVERY = ("rte", "sick", "cola")
ROWS = {
    "from scratch": Row(_FULL, encoder=f"scratch:{ENCODER}"),
    "feature-based, linear": Row({**_FEATURES, "epochs": "20"}),
    "feature-based, BiLSTM": Row({**_FEATURES, "head": "bilstm", "epochs": "5"}),
    "fine-tuning": Row(_FULL, targets=EVERY),
    "Pfeiffer adapter": Row(_ADAPTER, targets=EVERY),
    "LoRA": Row({"adapter": "lora", "learning-rate": "1e-3", "epochs": "10"}),
    "SNLI and MNLI, then fine-tuning": Row(
        _FULL, needs=("snli-mnli",), encoder="{runs}/snli-mnli"
    ),
    "AdapterFusion of MNLI, QNLI and SICK": Row(
        {
            "fuse": ",".join(f"{{runs}}/adapter-{name}" for name in ADAPTED),
            "learning-rate": "5e-4",
            "epochs": "10",
        },
        needs=tuple(f"adapter-{name}" for name in ADAPTED),
        targets=EVERY,
    ),
    "multi-task with MNLI, QNLI and SICK": Row(
        {"learning-rate": "1e-4", "epochs": "3", "sampling": "annealed"}, beside=ADAPTED
    ),
}
