"""Versions come and go; a broken one never answers, and the one before stays."""

import asyncio
import ctypes
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from kbert.local_server.limits import Refusal
from kbert.local_server.served_model import ServedFolder, ServedModel, status_of
from kbert.serving.format.recorded_requests import WARMUP_FILE
from kbert.serving.format.version_folders import METADATA_FILE


def run(work, folder: ServedFolder):
    async def main():
        with ThreadPoolExecutor(1) as executor, ThreadPoolExecutor(1) as loader:
            model = ServedModel(folder, executor, loader)
            await work(model, model.refresh)
            await model.close()

    asyncio.run(main())


def states(model: ServedModel) -> dict[int, str]:
    return {number: one.state for number, one in model.states.items()}


@pytest.mark.slow
def test_a_new_version_takes_over_and_an_old_one_comes_back(meter: Path):
    folder = meter.parent

    async def work(model, refresh):
        await refresh()
        assert model.pick().number == 1 and states(model) == {1: "AVAILABLE"}
        before = model.pick()
        shutil.copytree(meter, folder / "2")
        await refresh()
        assert model.pick().number == 2 and states(model) == {1: "END", 2: "AVAILABLE"}
        # What was accepted by the old one is still answered.
        answer = await before.answer("serving_default", {"text": np.array([b"abc"], object)})
        assert answer["length"].tolist() == [3]
        with pytest.raises(Refusal, match=r"Servable not found for request: Specific\(meter, 1\)"):
            model.pick(1)
        # A roll-back: the folder goes, and the version before answers again.
        shutil.rmtree(folder / "2")
        await refresh()
        assert model.pick().number == 1 and states(model) == {1: "AVAILABLE", 2: "END"}
        # Nothing is left: the last one stays.
        shutil.rmtree(folder)
        await refresh()
        assert model.pick().number == 1

    run(work, ServedFolder("meter", folder))


GLIBC = ctypes.CDLL(None)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def memory_that_the_c_library_keeps():
    """What is freed stays in memory below a block in use; yields what is resident with it."""
    GLIBC.malloc.restype = ctypes.c_void_p
    size = 2**16  # a block that is not mapped by itself
    blocks = [ctypes.c_void_p(GLIBC.malloc(size)) for _ in range(4096)]
    for block in blocks:
        GLIBC.memset(block, 1, size)
    last = blocks.pop()
    for block in blocks:
        GLIBC.free(block)
    yield resident_bytes()
    GLIBC.free(last)


@pytest.mark.skipif(not hasattr(GLIBC, "malloc_trim"), reason="needs the GNU C library")
@pytest.mark.parametrize("broken", [False, True])
def test_a_load_gives_kept_memory_back_also_if_it_fails(meter: Path, broken: bool):
    if broken:
        (meter / "saved_model.pb").write_bytes(b"broken")

    async def work(model, refresh):
        with memory_that_the_c_library_keeps() as full:
            await refresh()
            assert bool(model.states[1].error) == broken
            assert resident_bytes() < full - 2**27

    run(work, ServedFolder("meter", meter.parent))


def test_a_broken_version_is_told_of_and_tried_again_when_it_is_another(meter: Path):
    folder = meter.parent

    async def work(model, refresh):
        await refresh()
        shutil.copytree(meter, folder / "2")
        (folder / "2" / "saved_model.pb").write_bytes(b"broken")
        await refresh()
        assert model.pick().number == 1
        assert states(model) == {1: "AVAILABLE", 2: "END"}
        assert "2/saved_model.pb` must be" in model.states[2].error
        assert str(folder) not in model.states[2].error
        loads = len(asyncio.all_tasks())
        await refresh()
        assert states(model) == {1: "AVAILABLE", 2: "END"} and len(asyncio.all_tasks()) == loads
        shutil.copy(meter / "saved_model.pb", folder / "2" / "saved_model.pb")
        await refresh()
        assert model.pick().number == 2 and not model.states[2].error

    run(work, ServedFolder("meter", folder))


def test_a_version_without_weights_is_told_of_without_paths(meter: Path, caplog):
    folder = meter.parent
    next((meter / "variables").glob("*.index")).unlink()

    async def work(model, refresh):
        await refresh()
        error = model.states[1].error
        assert "Failed to find any matching files for 1/variables" in error and "{{" not in error
        assert str(folder) not in error and f"files for {meter}/variables" in caplog.text
        shutil.rmtree(meter)
        await refresh()
        assert states(model) == {}
        with pytest.raises(Refusal, match="Could not find any versions of model meter"):
            status_of(model)

    run(work, ServedFolder("meter", folder))


def test_a_copy_that_was_seen_half_is_tried_again(meter: Path):
    folder = meter.parent

    async def work(model, refresh):
        await refresh()
        shutil.copytree(meter, folder / "2")
        half = folder / "2" / WARMUP_FILE
        half.write_bytes(half.read_bytes()[:-9])
        await refresh()
        assert states(model) == {1: "AVAILABLE", 2: "END"}
        shutil.copy(meter / WARMUP_FILE, half)
        await refresh()
        assert model.pick().number == 2

    run(work, ServedFolder("meter", folder))


def test_a_version_whose_files_were_replaced_is_loaded_again(meter: Path):
    metadata = meter / METADATA_FILE

    async def work(model, refresh):
        await refresh()
        first = model.pick()
        await refresh()
        assert model.pick() is first
        text = metadata.read_text("utf-8")
        metadata.write_text(text.replace('"name": "meter"', '"name": "another"'), "utf-8")
        await refresh()
        assert model.pick().about["name"] == "another" and model.pick() is not first
        # What was accepted by the one before is still answered.
        answer = await first.answer("serving_default", {"text": np.array([b"abc"], object)})
        assert answer["length"].tolist() == [3]
        (meter / "saved_model.pb").write_bytes(b"broken")
        await refresh()
        assert model.pick().about["name"] == "another" and states(model) == {1: "AVAILABLE"}

    run(work, ServedFolder("meter", meter.parent))


def test_two_versions_and_labels(meter: Path):
    shutil.copytree(meter, meter.parent / "5")
    labels = {"stable": 1, "gone": 4}

    async def work(model, refresh):
        await refresh()
        assert model.pick().number == 5 and model.pick(1).number == 1
        assert model.pick(None, "stable").number == 1
        with pytest.raises(Refusal, match="Unrecognized servable version label: new"):
            model.pick(None, "new")
        with pytest.raises(Refusal) as caught:
            model.pick(None, "n" * 10**6)
        assert caught.value.message.endswith("label: " + "n" * 200)
        with pytest.raises(Refusal, match=r"Specific\(meter, 4\)"):
            model.pick(None, "gone")

    run(work, ServedFolder("meter", meter.parent, latest=0, labels=labels))


def test_nothing_is_ready_yet(tmp_path: Path):
    async def work(model, refresh):
        await refresh()
        with pytest.raises(Refusal, match=r"Servable not found for request: Latest\(none\)"):
            model.pick()

    run(work, ServedFolder("none", tmp_path))
