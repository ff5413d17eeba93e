"""All models together: new ones appear, old ones go, and requests have a deadline."""

import asyncio
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from kbert.local_server.limits import Metrics, Refusal
from kbert.local_server.model_store import ModelStore, check_inputs, signature_of


def text(*values: bytes) -> dict[str, np.ndarray]:
    return {"text": np.array(values, object)}


def test_models_appear_and_go(meter: Path, tmp_path: Path):
    base = tmp_path / "base"
    shutil.copytree(meter, base / "a" / "1")

    async def main():
        store = ModelStore(base, Metrics())
        await store.refresh()
        watch = asyncio.create_task(store.watch(0.02))
        shutil.copytree(meter, base / "b" / "1")
        while "b" not in store.models or not store.models["b"].ready:
            await asyncio.sleep(0.02)
        # Without a version for now, it stays; the whole folder gone, it goes.
        shutil.rmtree(base / "a" / "1")
        await asyncio.sleep(0.1)
        assert store.model("a").pick().number == 1
        shutil.rmtree(base / "a")
        while "a" in store.models:
            await asyncio.sleep(0.02)
        with pytest.raises(Refusal, match=r"Servable not found for request: Latest\(a\)"):
            store.model("a")
        # The whole folder goes for a moment: what is loaded goes on.
        shutil.rmtree(base)
        await asyncio.sleep(0.1)
        version = store.model("b").pick()
        deadline = time.monotonic() + 9
        found = await store.answer(version, "serving_default", text(b"ab"), deadline)
        assert found["length"].tolist() == [2]
        watch.cancel()
        await store.close()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_configured_folder_without_a_version_is_told_of_once(meter: Path, tmp_path: Path, caplog):
    gone = tmp_path / "gone"
    gone.mkdir()
    entries = "".join(
        f"config {{ name: '{name}' base_path: '{folder}' model_platform: 'tensorflow' }}\n"
        for name, folder in (("meter", meter.parent), ("gone", gone))
    )
    (tmp_path / "model.config").write_text(f"model_config_list {{ {entries} }}")

    async def main():
        store = ModelStore(tmp_path / "model.config", Metrics(), 1)
        for _ in range(2):
            await store.refresh()
        await store.close()

    asyncio.run(main())
    assert caplog.text.count(f"gone: there is no version in {gone}.") == 1


def test_the_deadline(meter: Path):
    async def main():
        store = ModelStore(meter.parent, Metrics())
        await store.refresh()
        version = store.model("meter").pick()
        version.queue._run = lambda *_: time.sleep(0.3) or {"y": np.zeros(1)}
        for seconds in (0.05, -1.0):
            with pytest.raises(Refusal, match="no answer in time") as caught:
                asked = time.monotonic() + seconds
                await store.answer(version, "serving_default", text(b"a"), asked)
            assert caught.value.code == "DEADLINE_EXCEEDED"
        await store.close()

    asyncio.run(main())


def test_signatures_and_inputs(server):
    version = server.store.model("meter").pick()
    signature = signature_of(version, "tokens")
    with pytest.raises(Refusal, match='Serving signature name: "other" not found in signature def'):
        signature_of(version, "other")
    good = {
        "token_ids": np.zeros((2, 3), np.int32),
        "segment_ids": np.zeros((2, 3), np.int32),
        "lengths": np.ones(2, np.int32),
    }
    check_inputs(signature, good)
    for change, message in (
        ({"lengths": np.ones(3, np.int32)}, "as many rows each"),
        ({"token_ids": np.zeros(2, np.int32)}, r"must have the shape \[-1, -1\], and has \[2\]"),
        ({"more": np.zeros(2)}, "inputs must be .'lengths', 'segment_ids', 'token_ids'., and are"),
    ):
        with pytest.raises(Refusal, match=message):
            check_inputs(signature, {**good, **change})
