"""Whole checks: with the packages that are here, and with those of TPUs where they are."""

import json

import pytest

from kbert.tpu_check import tpu_chips as tpu_chips
from kbert.tpu_check.check import check_config, check_step, report_lines
from kbert.tpu_check.costs import MEMORY
from kbert.tpu_check.graph import STRING
from kbert.tpu_check.lowering import has_tpu_kernels
from kbert.tpu_check.tpu_chips import TpuChip
from kbert.training.config.any_config import config_from_yaml
from tests.tpu_process import run_with_tpu_packages
from tests.training.small_steps import WithStrings, compiled

# Each of the faults, checked with the kernels and the compiler of TPUs.
_PROGRAM = """
import json, sys
import tests.training.small_steps as small
from kbert.training.config.any_config import config_from_yaml
from kbert.tpu_check.check import check_config, check_step
kinds = {"string": small.WithStrings, "dynamic": small.WithDynamicShape, "bessel": small.WithBessel}
found = {name: check_step(small.compiled(kind)).to_dict() for name, kind in kinds.items()}
found["tiny"] = check_config(config_from_yaml(sys.argv[1])).to_dict()
found["large"] = check_step(small.compiled(rows=2**14, length=512)).to_dict()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def tiny(tpu_configs):
    return check_config(config_from_yaml(tpu_configs / "tiny.yaml"))


def test_the_tiny_configuration_is_accepted(tiny):
    assert tiny.is_accepted and tiny.problems == []
    assert tiny.about == "2 examples of 32 tokens" and tiny.cores == 4
    assert tiny.platform == ("TPU" if has_tpu_kernels() else "CPU")
    assert tiny.flops > 0 and tiny.time.ideal > 0
    # Weights and two moments of each, four bytes a number; counts and metrics beside.
    assert 0 <= tiny.memory.state - 3 * 4 * tiny.parameters < 4000


def test_the_report_says_what_was_not_checked(tiny):
    text = report_lines(tiny)
    assert text.startswith("accepted: 2 examples of 32 tokens a core, 4 cores of v5e")
    assert "not checked: how fast a TPU runs it" in text
    assert ("which operations have a TPU kernel" in text) != has_tpu_kernels()
    assert json.dumps(tiny.to_dict())


def test_a_planted_fault_is_refused_with_what_to_change():
    report = check_step(compiled(WithStrings))
    assert not report.is_accepted
    assert {one.kind for one in report.problems} >= {STRING}
    text = report_lines(report)
    assert text.startswith("REFUSED") and f"\n{STRING}: " in text and "\n  change: " in text


def test_a_model_that_is_too_large_is_refused(monkeypatch):
    chip = TpuChip("v5e", 197e12, 30_000, 819e9, 200e9, "v5e:2x2", "v5litepod-4")
    monkeypatch.setitem(tpu_chips.CHIPS, "v5e", chip)
    report = check_step(compiled())
    assert not report.is_accepted
    assert {one.kind for one in report.problems} == {MEMORY}


def test_an_unknown_chip_is_an_error(tpu_configs):
    with pytest.raises(ValueError, match="`chip` must be one of"):
        check_config(config_from_yaml(tpu_configs / "tiny.yaml"), chip="v1")


@pytest.mark.parametrize("cores", [0, -2])
def test_there_must_be_a_core(cores, tpu_configs):
    message = f"`cores` must be at least 1. Received: cores={cores}"
    with pytest.raises(ValueError, match=message):
        check_config(config_from_yaml(tpu_configs / "tiny.yaml"), cores=cores)


@pytest.mark.slow
def test_with_the_kernels_and_the_compiler_of_tpus(tpu_configs):
    done = run_with_tpu_packages(_PROGRAM, str(tpu_configs / "tiny.yaml"))
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    kinds = {name: {one["kind"] for one in one["problems"]} for name, one in found.items()}
    assert found["tiny"]["is_accepted"] and found["tiny"]["platform"] == "TPU"
    assert found["tiny"]["memory"]["source"] == "TPU compiler"
    assert "string" in kinds["string"] and "dynamic shape" in kinds["dynamic"]
    assert kinds["bessel"] == {"unsupported operation"}
    assert "BesselI0" in found["bessel"]["problems"][0]["message"]
    assert kinds["large"] == {"memory"}
    assert not any(found[name]["is_accepted"] for name in ("string", "dynamic", "bessel", "large"))
