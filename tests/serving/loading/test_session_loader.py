"""SavedModels run without Python, as TF Serving runs them."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbert.serving.format.servable import libraries_with
from kbert.serving.loading import session_loader
from kbert.serving.loading.exported import Exported
from kbert.serving.loading.session_loader import (
    Session,
    SessionError,
    build_session_loader,
)
from tests.c_compiler import needs_compiler


@pytest.fixture(scope="module")
def session(exported_path: Path, programs: Path) -> Iterator[Session]:
    with Session(exported_path, folder=programs) as opened:
        yield opened


def agree(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert set(found) == set(expected)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype
        assert found[name].shape == values.shape
        if values.dtype == np.float32:  # the loader optimizes the graph in another order
            np.testing.assert_allclose(found[name], values, atol=1e-6)
        else:
            assert found[name].tolist() == values.tolist(), name


@needs_compiler
@pytest.mark.parametrize("rows", [0, 1, 12, 100])
def test_it_answers_as_python_does(
    session: Session, exported: Exported, texts: list[Any], rows: int
):
    batch = [texts[i % len(texts)] for i in range(rows)]
    found = session.run("serving_default", {"text": batch})
    agree(found, exported.run({"text": batch}))


@needs_compiler
def test_the_tokens_signature_too(session: Session, exported: Exported):
    ids = np.arange(24, dtype=np.int32).reshape(3, 8)
    inputs = {"token_ids": ids, "segment_ids": ids % 2, "lengths": np.array([8, 1, 5], np.int32)}
    agree(session.run("tokens", inputs), exported.run(inputs, "tokens"))
    nothing = {name: [] for name in inputs}
    agree(session.run("tokens", nothing), exported.run(nothing, "tokens"))


@needs_compiler
def test_words_for_masks(
    programs: Path, masked: Exported, masked_path: Path, texts: list[Any]
):
    filled = [
        text + b" [MASK][MASK] a" if isinstance(text, bytes) else f"{text} [MASK] {text}"
        for text in texts
    ]
    with Session(masked_path, folder=programs) as session:
        for batch in (filled, texts, [], filled[-1:]):
            inputs = {"text": batch}
            agree(session.run("serving_default", inputs), masked.run(inputs))
        pairs = {"text_a": texts, "text_b": texts[::-1]}
        agree(session.run("follows", pairs), masked.run(pairs, "follows"))


@needs_compiler
def test_one_call(exported: Exported, exported_path: Path, programs: Path):
    with Session(exported_path.parent, folder=programs) as session:
        found = session.run("serving_default", {"text": ["a"]})
    agree(found, exported.run({"text": ["a"]}))


@needs_compiler
def test_a_server_without_the_ops_of_tensorflow_text_refuses(exported_path: Path, programs: Path):
    """At the first request, which a server has among those of the warm-up."""
    with Session(exported_path, libraries=[], folder=programs) as session:
        with pytest.raises(SessionError, match="Op type not registered 'FastWordpieceTokenizeWith"):
            session.run("serving_default", {"text": ["a"]})


@needs_compiler
def test_a_library_that_is_not_there_is_told(exported_path: Path, programs: Path):
    with pytest.raises(SessionError, match="NOT_FOUND: .*absent.so"):
        Session(exported_path, libraries=["/absent.so"], folder=programs)


@needs_compiler
def test_missing_weights_are_told(exported_path: Path, programs: Path, tmp_path: Path):
    broken = shutil.copytree(exported_path, tmp_path / "1")
    shutil.rmtree(broken / "variables")
    with pytest.raises(SessionError, match="(?i)variable"):
        with Session(broken, folder=programs) as session:
            session.run("serving_default", {"text": ["a"]})


@needs_compiler
def test_an_error_of_the_graph_is_told_and_the_next_call_works(session: Session):
    one = np.ones((1, 1), np.int32)
    inputs = {"token_ids": one, "segment_ids": one, "lengths": np.ones(1, np.int32)}
    with pytest.raises(SessionError, match="INVALID_ARGUMENT: .*1000000"):
        session.run("tokens", {**inputs, "token_ids": one * 1_000_000})
    assert session.run("tokens", inputs)["scores"].shape == (1, 3)


@needs_compiler
def test_of_a_question_that_cannot_be_written_nothing_is_sent(session: Session, monkeypatch):
    expected = session.run("serving_default", {"text": ["a\ufffd film"]})
    found = session.run("serving_default", {"text": ["a\ud800 film"]})
    np.testing.assert_array_equal(found["scores"], expected["scores"])
    with monkeypatch.context() as patched, pytest.raises(RuntimeError, match="no such tensor"):
        patched.setattr(session_loader, "write_tensor", raise_after_a_part)
        session.run("serving_default", {"text": ["a film"]})
    again = session.run("serving_default", {"text": ["a\ufffd film"]})
    np.testing.assert_array_equal(again["scores"], expected["scores"])


def raise_after_a_part(stream, array, dtype):
    stream.write(b"\x07\0\0\0")
    raise RuntimeError("no such tensor")


@needs_compiler
@pytest.mark.parametrize(
    "request_bytes, message",
    [
        (b"\xff\xff\xff\xff", "a count of the request is out of range"),
        (b"\x01\0\0\0" b"\x03\0\0\0te", "the request ends too early"),
        (b"\x01\0", "the request ends too early"),
        # A tensor of DT_INT32 (3), rank 1, with 2**62 and with -1 elements.
        (b"\x01\0\0\0\0\0\0\0\x03\0\0\0\x01\0\0\0" + b"\0" * 7 + b"\x40", "too large"),
        (b"\x01\0\0\0\0\0\0\0\x03\0\0\0\x01\0\0\0" + b"\xff" * 8, "is negative"),
    ],
)
def test_a_damaged_request_ends_the_program(
    exported_path: Path, programs: Path, request_bytes: bytes, message: str
):
    libraries = libraries_with(["FastWordpieceTokenizeWithOffsets"])
    command = [build_session_loader(programs), exported_path, *libraries]
    done = subprocess.run(command, input=request_bytes, capture_output=True)
    assert done.returncode == 2
    last_line = done.stderr.decode().splitlines()[-1]
    assert last_line.startswith("session_loader: ") and message in last_line


@needs_compiler
def test_wrong_calls_are_told(session: Session):
    with pytest.raises(ValueError, match=r"one of \['serving_default', 'tokens'\].*='classify'"):
        session.run("classify", {})
    with pytest.raises(ValueError, match=r"must be \['text'\]. Received: inputs=\[\]"):
        session.run("serving_default", {})
    with pytest.raises(ValueError, match=r"`inputs\['text'\]` must have 1 dimension"):
        session.run("serving_default", {"text": [["a"]]})


@needs_compiler
def test_a_loader_that_has_ended_is_told(exported_path: Path, programs: Path):
    session = Session(exported_path, folder=programs)
    session._process.kill()
    session._process.wait()
    with pytest.raises(SessionError, match="(?s)The loader (has ended|ended early): status -9"):
        session.run("serving_default", {"text": ["a" * 100_000]})
    session.close()


@needs_compiler
def test_it_is_built_once(programs: Path):
    program = build_session_loader(programs)
    before = program.stat().st_mtime_ns
    assert build_session_loader(programs) == program
    assert program.stat().st_mtime_ns == before
    assert [file.name for file in programs.iterdir()] == [program.name]  # no scratch is left


@needs_compiler
def test_the_cache_is_where_the_environment_says(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
):
    name = build_session_loader(programs).name
    cached = tmp_path / "kbert" / "session_loader" / name
    cached.parent.mkdir(parents=True)
    cached.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert build_session_loader() == cached


def test_a_missing_compiler_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(FileNotFoundError, match="install gcc.*no program 'no-such-compiler'"):
        build_session_loader(tmp_path)


def test_a_failing_compiler_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho out of registers >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(SessionError, match="failed: out of registers"):
        build_session_loader(tmp_path / "programs")
    assert list((tmp_path / "programs").iterdir()) == []
