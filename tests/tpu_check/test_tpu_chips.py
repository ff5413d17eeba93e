"""TPU chips by name."""

import pytest

from kbert.tpu_check.tpu_chips import CHIPS, tpu_chip, variables_of_a_machine


def test_v5e_is_as_google_describes_it():
    chip = tpu_chip("v5e")
    # cloud.google.com/tpu/docs/v5e: 197 TFLOPs (bf16), 16 GB HBM, 819 GBps, 1,600 Gbps.
    assert (chip.flops, chip.bandwidth, chip.links * 8) == (197e12, 819e9, 1600e9)
    assert chip.memory == 16 * 2**30


def test_each_chip_has_its_own_name_and_four_chips():
    assert all(name == chip.name for name, chip in CHIPS.items())
    assert all("2x2" in chip.topology for chip in CHIPS.values())


def test_an_unknown_chip_is_an_error():
    message = "`chip` must be one of v5e, v4, v5p, v6e. Received: chip='v9'"
    with pytest.raises(ValueError, match=message):
        tpu_chip("v9")


def test_a_machine_without_tpus_is_told_of_as_one_with_four():
    found = variables_of_a_machine(tpu_chip("v5e"))
    assert found["TPU_ACCELERATOR_TYPE"] == "v5litepod-4"
    assert found["JAX_PLATFORMS"] == "cpu"
