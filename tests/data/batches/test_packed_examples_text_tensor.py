"""Python strings as tensors."""

import numpy as np
import pytest

from kbert.data.batches.packed_examples import text_tensor


def test_str_and_bytes():
    texts = ["é\0 中", b"\xff\0", "", np.str_("a"), np.bytes_(b"b")]
    tensor = text_tensor(texts)
    assert tensor.dtype == "string" and tensor.shape == (5,)
    expected = [b"\xc3\xa9\0 \xe4\xb8\xad", b"\xff\0", b"", b"a", b"b"]
    assert tensor.numpy().tolist() == expected


def test_none_at_all():
    assert text_tensor([]).shape == (0,) and text_tensor([]).dtype == "string"


def test_lone_surrogates_become_one_replacement_each():
    # Two that would be a pair are two code points to Python, and so they are here.
    (encoded,) = text_tensor(["a\ud800b\ud83d\ude00"]).numpy()
    assert encoded.decode() == "a\ufffdb\ufffd\ufffd"


@pytest.mark.parametrize("wrong", [None, 3, float("nan"), ["a"], np.nan])
def test_what_is_no_text_is_named(wrong):
    with pytest.raises(TypeError) as error:
        text_tensor(["a", wrong])
    expected = f"`texts` must hold str or bytes only. Received: {wrong!r} at index 1"
    assert str(error.value) == expected
