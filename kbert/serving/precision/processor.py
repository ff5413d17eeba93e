"""The processor's instructions, of those that make bfloat16 fast."""

from pathlib import Path

# Linux's names of the instructions that multiply bfloat16.
_BFLOAT16_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16", "svebf16"})
_CPU_INFO = Path("/proc/cpuinfo")


def computes_bfloat16(cpu_info: Path = _CPU_INFO) -> bool:
    """Returns whether Linux's file lists no features, or one that multiplies bfloat16."""
    try:
        lines = cpu_info.read_text(encoding="utf-8").splitlines()
    except OSError:
        return True
    told = [line for line in lines if line.lower().startswith(("flags", "features"))]
    return not told or bool(_BFLOAT16_FLAGS & set(told[0].split()))
