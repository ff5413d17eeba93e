"""What Linux's list of features says of a processor."""

from pathlib import Path

import pytest

from kbert.serving.export.processor import computes_bfloat16, packs_integers


@pytest.mark.parametrize(
    "text, bfloat16, integers",
    [
        ("flags\t\t: fpu avx2 avx512bw avx512_bf16\n", True, True),
        ("flags\t\t: fpu amx_bf16 amx_tile\n", True, False),
        ("flags\t\t: fpu avx2 avx512f avx512bw\n", False, True),
        ("flags\t\t: fpu avx2 avx_vnni\n", False, True),
        ("flags\t\t: fpu avx2\n", False, False),
        ("Features\t: fp asimd bf16\n", True, False),
        ("nothing of that kind\n", True, True),
    ],
)
def test_what_the_processor_can(tmp_path: Path, text: str, bfloat16: bool, integers: bool):
    (tmp_path / "cpuinfo").write_text(text)
    assert computes_bfloat16(tmp_path / "cpuinfo") is bfloat16
    assert packs_integers(tmp_path / "cpuinfo") is integers
    assert computes_bfloat16(tmp_path / "none") is packs_integers(tmp_path / "none") is True
