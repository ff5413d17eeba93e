"""Linux's list of a processor's features."""

from pathlib import Path

import pytest

from kbert.serving.precision.processor import computes_bfloat16


@pytest.mark.parametrize(
    "text, expected",
    [
        ("flags\t\t: fpu avx2 avx512bw avx512_bf16\n", True),
        ("flags\t\t: fpu amx_bf16 amx_tile\n", True),
        ("flags\t\t: fpu avx2 avx512f avx512bw\n", False),
        ("Features\t: fp asimd bf16\n", True),
        ("nothing of that kind\n", True),
    ],
)
def test_bfloat16(tmp_path: Path, text: str, expected: bool):
    (tmp_path / "cpuinfo").write_text(text)
    assert computes_bfloat16(tmp_path / "cpuinfo") is expected


def test_without_a_list_nothing_is_missing(tmp_path: Path):
    assert computes_bfloat16(tmp_path / "none")
