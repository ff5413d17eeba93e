"""SavedModels run without Python: by TensorFlow's C++ session loader, as TF Serving runs them.

`tf.saved_model.load` rebuilds the functions in Python and so hides faults that a server meets: ops
that are not linked, variables that are not found (keras issue 20095). Here a small C program,
`session_loader.c`, loads the folder through `TF_LoadSessionFromSavedModel`. It does not replace
the server's HTTP, batching and version handling.
"""

import hashlib
import io
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import numpy as np
import tensorflow as tf

from kbert.serving.format.server_versions import libraries_with
from kbert.serving.format.signatures import Signature, read_meta_graph, signatures_of
from kbert.serving.format.version_folders import find_export
from kbert.serving.loading.tensor_stream import (
    read_count,
    read_name,
    read_tensor,
    write_count,
    write_name,
    write_tensor,
)

SOURCE = Path(__file__).with_name("session_loader.c")
_SHARED_OBJECTS = ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")
_SHOWN_CHARACTERS = 2000
# TF_Code -> its name, such as 3 -> INVALID_ARGUMENT.
_CODES = {getattr(tf.errors, name): name for name in dir(tf.errors) if name.isupper()}


class SessionError(RuntimeError):
    """The C++ loader refused the SavedModel, or failed to run it."""


def build_session_loader(folder: str | os.PathLike[str] | None = None) -> Path:
    """Compiles the C program against the installed TensorFlow, once.

    Args:
        folder: Folder of the program; by default $XDG_CACHE_HOME/kbert/session_loader, where
            XDG_CACHE_HOME is ~/.cache if it is not set. The compiler is $CC, or gcc.

    Returns:
        The program. Another source, TensorFlow or compiler has another file name.

    Raises:
        FileNotFoundError: There is no compiler, or TensorFlow has no C++ library.
        SessionError: The compiler failed; the message holds its output.
    """
    compiler = os.environ.get("CC") or "gcc"
    if shutil.which(compiler) is None:
        raise FileNotFoundError(
            f"A C compiler is needed to build {SOURCE.name}: install gcc, or name one in the "
            f"environment variable CC. Received: no program {compiler!r}"
        )
    libraries = Path(tf.sysconfig.get_lib())
    for name in _SHARED_OBJECTS:
        if not (libraries / name).is_file():
            raise FileNotFoundError(
                f"TensorFlow's Linux wheel is needed, with {name}. Received: none in {libraries}"
            )
    command = [compiler, "-O2", "-std=gnu11", f"-I{tf.sysconfig.get_include()}", str(SOURCE)]
    command += [f"-L{libraries}", *(f"-l:{name}" for name in _SHARED_OBJECTS)]
    command += [f"-Wl,-rpath,{libraries}"]
    if shutil.which("ld.gold"):  # GNU ld takes four times as long to read TensorFlow's symbols
        command.append("-fuse-ld=gold")
    key = "\0".join([SOURCE.read_text(encoding="utf-8"), tf.__version__, *command])
    digest = hashlib.sha256(key.encode("utf-8")).hexdigest()[:16]
    parent = Path(folder) if folder is not None else _cache_folder()
    program = parent / f"session_loader-{digest}"
    if not program.is_file():
        parent.mkdir(parents=True, exist_ok=True)
        # Built beside it, then renamed: two processes may build at the same time.
        with tempfile.TemporaryDirectory(dir=parent) as scratch:
            partial = Path(scratch, program.name)
            done = subprocess.run([*command, "-o", str(partial)], capture_output=True, text=True)
            if done.returncode:
                raise SessionError(f"{compiler} failed: {done.stderr[-_SHOWN_CHARACTERS:]}")
            os.replace(partial, program)
    return program


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "kbert", "session_loader")


class Session(AbstractContextManager["Session"]):
    """A SavedModel in a process of its own without Python. A context manager.

    Args:
        path: BASE/<model>/<version>, or BASE/<model> for its highest version.
        libraries: Shared objects with ops to load first; by default those of tensorflow-text that
            the graph needs, which TF Serving has linked.
        folder: Folder of the program, see `build_session_loader`.

    Raises:
        FileNotFoundError: There is no export, no compiler or no C++ library of TensorFlow.
        SessionError: The loader refuses the SavedModel; the message holds TensorFlow's.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        libraries: Sequence[str | os.PathLike[str]] | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self.path = find_export(path)
        meta_graph = read_meta_graph(self.path)
        self.signatures = signatures_of(meta_graph)
        if libraries is None:
            graph = meta_graph.graph_def
            nodes = [graph.node, *(function.node_def for function in graph.library.function)]
            libraries = libraries_with(node.op for group in nodes for node in group)
        command = [build_session_loader(folder), self.path, *libraries]
        self._log: IO[bytes] = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [os.fspath(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        try:
            self._read_status()
        except BaseException:
            self.close()
            raise

    def run(self, signature: str, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Calls a signature once.

        Args:
            signature: Its name.
            inputs: Name of each input -> its batch, an array or nested list (B, ...).

        Returns:
            Name of each output -> its batch, (B, ...). Strings are bytes objects.

        Raises:
            ValueError: The signature is unknown, it has other inputs, or one has another rank.
            SessionError: The graph failed; the message holds TensorFlow's.
        """
        called = self._checked(signature, inputs)
        arrays = {name: tensor.batch(name, inputs[name]) for name, tensor in called.inputs.items()}
        # As a whole: the process must not read a part of a request that cannot be serialized.
        question = io.BytesIO()
        write_count(question, len(arrays))
        for name, array in arrays.items():
            write_name(question, called.inputs[name].tensor)
            write_tensor(question, array, called.inputs[name].dtype)
        write_count(question, len(called.outputs))
        for tensor in called.outputs.values():
            write_name(question, tensor.tensor)
        stream: Any = self._process.stdin
        try:
            stream.write(question.getbuffer())
            stream.flush()
        except BrokenPipeError as error:
            raise SessionError(f"The loader has ended: {self._last_words()}") from error
        self._read_status()
        return {name: read_tensor(self._answers()) for name in called.outputs}

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()
        self._log.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _checked(self, name: str, inputs: Mapping[str, Any]) -> Signature:
        if name not in self.signatures:
            raise ValueError(
                f"`signature` must be one of {sorted(self.signatures)}. "
                f"Received: signature={name!r}"
            )
        called = self.signatures[name]
        if set(inputs) != set(called.inputs):
            raise ValueError(
                f"`inputs` of the signature {name!r} must be {sorted(called.inputs)}. "
                f"Received: inputs={sorted(inputs)}"
            )
        return called

    def _answers(self) -> Any:
        return self._process.stdout

    def _read_status(self) -> None:
        try:
            code = read_count(self._answers())
            message = read_name(self._answers()) if code else ""
        except EOFError as error:
            raise SessionError(f"The loader ended early: {self._last_words()}") from error
        if code:
            raise SessionError(f"{_CODES.get(code, code)}: {message}")

    def _last_words(self) -> str:
        code = self._process.wait()
        self._log.seek(0)
        words = self._log.read().decode("utf-8", "replace")
        return f"status {code}, {words[-_SHOWN_CHARACTERS:]}"
