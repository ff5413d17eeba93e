"""The processor's instructions, of those that make a precision of exports fast."""

from pathlib import Path

# Linux's names of the instructions that multiply bfloat16.
_BFLOAT16_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16", "svebf16"})
# Of those for which oneDNN packs a matrix of int8 once, and not at each product.
_PACKING_FLAGS = frozenset({"avx512bw", "avx_vnni"})
_CPU_INFO = Path("/proc/cpuinfo")


def computes_bfloat16(cpu_info: Path = _CPU_INFO) -> bool:
    """Returns whether Linux's file lists no features, or one that multiplies bfloat16."""
    return _may_have(_BFLOAT16_FLAGS, cpu_info)


def packs_integers(cpu_info: Path = _CPU_INFO) -> bool:
    """Returns whether Linux's file lists no features, or one for which oneDNN packs int8."""
    return _may_have(_PACKING_FLAGS, cpu_info)


def _may_have(flags: frozenset[str], cpu_info: Path) -> bool:
    try:
        lines = cpu_info.read_text(encoding="utf-8").splitlines()
    except OSError:
        return True
    told = [line for line in lines if line.lower().startswith(("flags", "features"))]
    return not told or bool(flags & set(told[0].split()))
