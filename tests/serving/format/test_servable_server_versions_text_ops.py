"""The table of tensorflow-text's ops against the installed libraries."""

from pathlib import Path

import pytest
import tensorflow_text
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session

from kbert.serving.format.servable import ICU_OPS, LIBRARIES, TEXT_OPS, libraries_with

FOLDER = Path(tensorflow_text.__file__).parent / "python"


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_registers_the_ops_of_the_table(library: str):
    handle = pywrap_tf_session.TF_LoadLibrary(str(FOLDER / library))
    registered = op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetOpList(handle))
    assert sorted(op.name for op in registered.op) == sorted(LIBRARIES[library])


def test_no_library_is_missing_from_the_table():
    found = {file.relative_to(FOLDER).as_posix() for file in FOLDER.glob("*/_*.so")}
    assert found == set(LIBRARIES)


def test_each_op_stands_once():
    assert len(TEXT_OPS) == sum(map(len, LIBRARIES.values()))
    assert ICU_OPS < TEXT_OPS


def test_the_libraries_of_some_ops():
    assert libraries_with(["MatMul", "RougeL", "FastBertNormalize"]) == [
        FOLDER / "metrics" / "_text_similarity_metric_ops.so",
        FOLDER / "ops" / "_fast_bert_normalizer.so",
    ]
    assert libraries_with(["MatMul"]) == []
    assert all(library.is_file() for library in libraries_with(TEXT_OPS))
