"""SavedModels with a subword model in them give the same ids and texts, without Python too."""

from collections.abc import Callable
from pathlib import Path

import keras
import pytest
import tensorflow as tf

from kbert.serving.format.servable import check_export
from kbert.serving.loading.session_loader import Session
from kbert.text.subword import Subword
from kbert.text.subword_training import train_subwords
from tests.c_compiler import needs_compiler
from tests.text.subword_lines import ENGLISH, GERMAN, mixed_lines

TEXT = [tf.TensorSpec((None,), tf.string, name="text")]
Serve = Callable[[tf.Tensor], dict[str, tf.Tensor]]


@pytest.fixture(scope="module")
def subword(tmp_path_factory: pytest.TempPathFactory) -> Subword:
    return train_subwords(
        [ENGLISH, GERMAN],
        tmp_path_factory.mktemp("subword") / "a.model",
        vocabulary_size=500,
        byte_fallback=True,
    )


@pytest.fixture(scope="module")
def rows() -> list[str]:
    return ["", *mixed_lines()[::7]]


@pytest.fixture(scope="module")
def serve(subword: Subword) -> Serve:
    def answer(text: tf.Tensor) -> dict[str, tf.Tensor]:
        token_ids = subword.tokenize(text)
        return {
            "token_ids": token_ids.to_tensor(subword.padding_id),
            "text": subword.detokenize(token_ids),
        }

    return answer


def by_module(serve: Serve, path: Path) -> None:
    module = tf.Module()
    module.serve = tf.function(serve, input_signature=TEXT)
    tf.saved_model.save(module, str(path), signatures=module.serve)


def by_archive(serve: Serve, path: Path) -> None:
    archive = keras.export.ExportArchive()  # nothing is tracked
    archive.add_endpoint("serve", serve, TEXT)
    archive.write_out(str(path), verbose=False)


@pytest.fixture(scope="module", params=[by_module, by_archive])
def exported(
    request: pytest.FixtureRequest, serve: Serve, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp("export") / "subword" / "1"
    request.param(serve, path)
    return path


def test_loaded_again_it_answers_the_same(
    exported: Path, subword: Subword, serve: Serve, rows: list[str]
):
    loaded = tf.saved_model.load(str(exported)).signatures["serving_default"]
    tf.random.set_seed(1)  # it must not forget its model
    for batch in (rows, []):
        text = tf.constant(batch, tf.string)
        found, expected = loaded(text=text), serve(text)
        assert found["token_ids"].numpy().tolist() == expected["token_ids"].numpy().tolist()
        assert found["text"].numpy().tolist() == expected["text"].numpy().tolist()
    assert subword.tokenize(text).to_list() == []


def test_tf_serving_knows_its_ops(exported: Path):
    report = check_export(exported)
    assert report.problems == ()
    assert report.text_ops == ("SentencepieceOp", "SentencepieceTokenizeOp")


@pytest.mark.slow
@needs_compiler
def test_it_runs_without_python(serve: Serve, rows: list[str], tmp_path: Path):
    by_archive(serve, tmp_path / "subword" / "1")
    inputs = {"text": rows}
    with Session(tmp_path / "subword", folder=tmp_path) as session:
        found = session.run("serving_default", inputs)
    expected = serve(tf.constant(rows))
    assert found["token_ids"].tolist() == expected["token_ids"].numpy().tolist()
    assert found["text"].tolist() == expected["text"].numpy().tolist()


def test_many_functions_hold_the_model_once(subword: Subword, tmp_path: Path):
    sizes = []
    for count in (1, 4):
        archive = keras.export.ExportArchive()
        for number in range(count):
            name = f"serve_{number}"
            archive.add_endpoint(name, lambda text: subword.tokenize(text).to_tensor(), TEXT)
        archive.write_out(str(tmp_path / str(count)), verbose=False)
        sizes.append((tmp_path / str(count) / "saved_model.pb").stat().st_size)
    assert sizes[1] - sizes[0] < len(subword.model) / 2
