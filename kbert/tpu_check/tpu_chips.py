"""TPU chips: speed, memory, and number of chips of a machine."""

from dataclasses import dataclass

GIB = 2**30


@dataclass(frozen=True)
class TpuChip:
    """A generation of TPUs. TensorFlow sees a chip as one core, except on v4 (see `CHIPS`)."""

    name: str
    flops: float  # peak bfloat16 FLOP/s
    memory: int  # bytes of memory (HBM) per core
    bandwidth: float  # bytes per second between HBM and the chip
    links: float  # bytes per second over all links to other chips (ICI)
    topology: str  # the compiler's name of four chips
    accelerator: str  # Google Cloud's name of a machine with four chips


# Source: cloud.google.com/tpu/docs/v5e, /v4, /v5p and /v6e, "System architecture": peak compute
# per chip (bf16), HBM capacity and bandwidth per chip, inter-chip interconnect bandwidth.
CHIPS: dict[str, TpuChip] = {
    chip.name: chip
    for chip in (
        TpuChip("v5e", 197e12, 16 * GIB, 819e9, 200e9, "v5e:2x2", "v5litepod-4"),
        TpuChip("v4", 275e12, 32 * GIB, 1228e9, 300e9, "v4:2x2x1", "v4-8"),
        TpuChip("v5p", 459e12, 95 * GIB, 2765e9, 600e9, "v5p:2x2x1", "v5p-8"),
        TpuChip("v6e", 918e12, 32 * GIB, 1640e9, 448e9, "v6e:2x2", "v6e-4"),
    )
}


def tpu_chip(name: str) -> TpuChip:
    """Returns the chip of a name, a key of `CHIPS`, or raises a ValueError."""
    if name not in CHIPS:
        raise ValueError(f"`chip` must be one of {', '.join(CHIPS)}. Received: chip={name!r}")
    return CHIPS[name]


def variables_of_a_machine(chip: TpuChip) -> dict[str, str]:
    """Returns variables that, set before TensorFlow is loaded, stand for a machine of four TPUs."""
    return {
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": chip.accelerator,
        "TPU_WORKER_HOSTNAMES": "localhost",
        "TPU_WORKER_ID": "0",
        # JAX, through which libtpu compiles, must not look for a TPU either.
        "JAX_PLATFORMS": "cpu",
    }
