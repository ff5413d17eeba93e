from pathlib import Path

import pytest

from kbert.checkpoints.read_checkpoint import detect_format, read_checkpoint
from tests.checkpoints.synthetic_bert import hf_tensors, write_hf


def _touch(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("{}")
    return folder


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("kbert.json", "model.safetensors"), "kbert"),
        (("config.json", "model.safetensors"), "huggingface"),
        (("config.json", "model.safetensors.index.json"), "huggingface"),
        (("config.json", "model.safetensors", "pytorch_model.bin"), "huggingface"),
        (("bert_config.json", "m.ckpt.index", "m.ckpt.data-00000-of-00001"), "tf1_bert"),
    ],
)
def test_folders(tmp_path: Path, names: tuple[str, ...], expected: str) -> None:
    found = detect_format(_touch(tmp_path / "m", *names))
    assert found.name == expected
    assert found.path == tmp_path / "m" / ("m.ckpt" if expected == "tf1_bert" else "")


def test_a_file_of_the_folder(tmp_path: Path) -> None:
    folder = _touch(tmp_path / "m", "config.json", "model.safetensors")
    assert detect_format(folder / "model.safetensors").path == folder


def test_the_object_graph_tells_tf2_from_tf1(tmp_path: Path) -> None:
    folder = _touch(tmp_path / "m", "ckpt-1.data-00000-of-00001")
    (folder / "ckpt-1.index").write_bytes(b"\x00\x1c_CHECKPOINTABLE_OBJECT_GRAPH\x08")
    assert detect_format(folder).name == "model_garden"


def test_several_checkpoints_in_a_folder(tmp_path: Path) -> None:
    folder = _touch(
        tmp_path,
        *(f"ckpt-{i}.{end}" for i in (1, 2) for end in ("index", "data-00000-of-00001")),
    )
    with pytest.raises(ValueError, match="must name one of .*Found: ckpt-1, ckpt-2"):
        detect_format(folder)
    (folder / "checkpoint").write_text(
        'model_checkpoint_path: "/elsewhere/ckpt-2"\nall_model_checkpoint_paths: "ckpt-1"\n'
    )
    assert detect_format(folder).path == folder / "ckpt-2"
    assert detect_format(folder / "ckpt-1").path == folder / "ckpt-1"


def test_an_index_without_data(tmp_path: Path) -> None:
    folder = _touch(tmp_path, "m.ckpt.index")
    with pytest.raises(ValueError, match="Missing: `.*m.ckpt.data-00000-of-00001`"):
        detect_format(folder / "m.ckpt")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "last.ckpt"])
def test_a_pickle_is_refused_with_the_reason(tmp_path: Path, name: str) -> None:
    folder = _touch(tmp_path / "m", "config.json", "vocab.txt", name)
    with pytest.raises(ValueError, match="must hold its weights as safetensors") as error:
        read_checkpoint(folder)
    assert f"Received: {name}, which is a Python pickle" in str(error.value)
    assert "can run any code" in str(error.value)
    assert "save_pretrained(folder)" in str(error.value)
    with pytest.raises(ValueError, match="is a Python pickle"):
        read_checkpoint(folder / name)


def test_an_exported_network_is_told(tmp_path: Path):
    for name in ("encoder.onnx", "decoder.onnx", "config.json"):
        (tmp_path / name).touch()
    told = "the network decoder.onnx, encoder.onnx for other runtimes, of which its README.md"
    with pytest.raises(ValueError, match=told):
        detect_format(tmp_path)


def test_what_was_found_is_listed(tmp_path: Path) -> None:
    _touch(tmp_path / "m" / "deep", "x")
    _touch(tmp_path / "m", "config.json", "tf_model.h5")
    with pytest.raises(ValueError, match="Found in `.*m`: config.json, deep/, tf_model.h5"):
        detect_format(tmp_path / "m")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="Found in `.*empty`: nothing"):
        detect_format(tmp_path / "empty")
    _touch(tmp_path / "many", *(f"{i:02}" for i in range(25)))
    with pytest.raises(ValueError, match="18, 19 and 5 more"):
        detect_format(tmp_path / "many")


def test_a_folder_of_runs_names_them(tmp_path: Path) -> None:
    _touch(tmp_path / "runs" / "b", "metrics.json")
    _touch(tmp_path / "runs" / "a", "kbert.json")
    _touch(tmp_path / "runs" / "c", "x")
    with pytest.raises(ValueError, match="Name one of the runs or models in it: `.*/a`, `.*/b`$"):
        detect_format(tmp_path / "runs")


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="There is nothing at path='.*nothing'"):
        detect_format(tmp_path / "nothing")


def test_detection_opens_no_weights(tmp_path: Path) -> None:
    folder = write_hf(tmp_path / "m", hf_tensors())
    (folder / "model.safetensors").write_bytes(b"")
    assert detect_format(folder).name == "huggingface"
