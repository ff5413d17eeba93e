"""What stands in a folder for CTranslate2, and what it cannot hold.

That it translates alike is tested in tests/tasks/translation/test_ctranslate2_folder.py.
"""

import json
import sys

import numpy as np
import pytest

from kbert.checkpoints.arrays.weight_table import transformer_shapes
from kbert.checkpoints.ctranslate2 import TokenNames, write_ctranslate2

CONFIG = {
    "vocabulary_size": 6,
    "hidden_dim": 4,
    "num_encoder_layers": 1,
    "num_decoder_layers": 2,
    "num_heads": 2,
    "intermediate_dim": 8,
    "max_sequence_length": 5,
    "activation": "relu",
    "norm": "pre",
    "positions": "learned",
    "tied": "all",
    "source_vocabulary_size": None,
    "output_bias": False,
    "layer_norm_epsilon": 1e-6,
}
PIECES = ["<pad>", "<unk>", "<s>", "</s>", "a", "\u2581b"]
TOKENS = TokenNames(PIECES, PIECES, "<unk>", "<s>", "</s>")


def arrays_for(config):
    draw = np.random.default_rng(2)
    shapes = transformer_shapes(config)
    return {name: draw.normal(size=shape).astype("float32") for name, shape in shapes.items()}


def written(folder, tokens=TOKENS, config=CONFIG, arrays=None, **options):
    pytest.importorskip("ctranslate2", reason="needs the extra ctranslate2")
    arrays = arrays_for(config) if arrays is None else arrays
    return write_ctranslate2(config, arrays, tokens, folder, **options)


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def test_the_files_of_a_shared_vocabulary(tmp_path):
    folder = written(tmp_path / "one", search={"beam_size": 2}, files={"source.model": b"x"})
    wanted = ["config.json", "model.bin", "search.json", "shared_vocabulary.json", "source.model"]
    assert names(folder) == wanted
    assert json.loads((folder / "shared_vocabulary.json").read_text()) == PIECES
    assert json.loads((folder / "search.json").read_text()) == {"beam_size": 2}
    assert (folder / "source.model").read_bytes() == b"x"
    about = json.loads((folder / "config.json").read_text())
    assert about["decoder_start_token"] == about["bos_token"] == "<s>"
    assert (about["eos_token"], about["unk_token"]) == ("</s>", "<unk>")
    assert (about["add_source_bos"], about["add_source_eos"]) == (False, True)
    assert about["layer_norm_epsilon"] == 1e-6


def test_separate_vocabularies(tmp_path):
    config = {**CONFIG, "tied": "target", "source_vocabulary_size": 4}
    source = ["<unk>", "</s>", "x", "y"]  # the start is of the target alone
    folder = written(tmp_path / "two", TokenNames(source, PIECES, "<unk>", "<s>", "</s>"), config)
    assert json.loads((folder / "source_vocabulary.json").read_text()) == source
    assert json.loads((folder / "target_vocabulary.json").read_text()) == PIECES


def test_a_shared_table_is_written_once(tmp_path):
    """V D floats of 4 bytes for each table more: of the target, and of the output."""
    config = {**CONFIG, "vocabulary_size": 600}
    pieces = [*PIECES, *(f"p{number}" for number in range(594))]
    tokens = TokenNames(pieces, pieces, "<unk>", "<s>", "</s>")
    sizes = {}
    for tied in ("all", "target", "none"):
        folder = written(tmp_path / tied, tokens, {**config, "tied": tied})
        sizes[tied] = (folder / "model.bin").stat().st_size
    table = 600 * 4 * 4
    assert abs(sizes["target"] - sizes["all"] - table) < 100
    assert abs(sizes["none"] - sizes["target"] - table) < 100


def test_half_precision_is_written_as_float32(tmp_path):
    """Weights that float16 holds exactly give the same file, whatever type they came in."""
    rounded = {name: array.astype("float16") for name, array in arrays_for(CONFIG).items()}
    exact = {name: array.astype("float32") for name, array in rounded.items()}
    files = [
        (written(tmp_path / name, arrays=arrays) / "model.bin").read_bytes()
        for name, arrays in (("half", rounded), ("full", exact))
    ]
    assert files[0] == files[1]


def test_a_folder_is_replaced_only_on_request(tmp_path):
    folder = written(tmp_path / "folder")
    with pytest.raises(FileExistsError, match="must not exist yet"):
        written(folder)
    written(folder, files={"more": b""}, overwrite=True)
    assert "more" in names(folder)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"positions": "sinusoidal"}, '`positions` must be "learned"'),
        ({"activation": "softplus"}, "`activation` must be one that CTranslate2 has: relu, gelu"),
        ({"num_decoder_layers": 1}, "those of a Transformer of this conf.*not known: decoder_bl"),
        ({"output_bias": True}, "missing: output/bias"),
        ({"hidden_dim": 6}, r"source_embedding/embeddings \(expected \(6, 6\), found \(6, 4\)\)"),
    ],
)
def test_what_does_not_fit_the_configuration(changes, message, tmp_path):
    arrays = arrays_for(CONFIG)
    with pytest.raises(ValueError, match=message):
        write_ctranslate2({**CONFIG, **changes}, arrays, TOKENS, tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize(
    "tokens, message",
    [
        (
            TokenNames(PIECES[:5], PIECES, "<unk>", "<s>", "</s>"),
            "`tokens.source` must be as many different pieces as there are embeddings, 6. "
            "Received: 5, 5 of",
        ),
        (TokenNames(PIECES, [*PIECES[:5], "a"], "<unk>", "<s>", "</s>"), "target.*6, 5 of them"),
        (TokenNames(PIECES, PIECES, "<unk>", "<s>", "<end>"), "source.*Missing: \\['<end>'\\]"),
        (TokenNames(PIECES, PIECES, "<unk>", "[S]", "</s>"), "target.*Missing: \\['\\[S\\]'\\]"),
    ],
)
def test_vocabularies_that_do_not_fit(tokens, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write_ctranslate2(CONFIG, arrays_for(CONFIG), tokens, tmp_path / "folder")


def test_the_extra_is_named_where_the_package_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install \"\.\[ctranslate2\]\""):
        write_ctranslate2(CONFIG, arrays_for(CONFIG), TOKENS, tmp_path / "folder")
