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
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
import tensorflow as tf

from kbert.data.tables.columns import without_surrogates
from kbert.serving.format.servable import libraries_with, ops_of
from kbert.serving.format.signatures import checked_call, read_meta_graph, signatures_of
from kbert.serving.format.version_folders import find_export

SOURCE = Path(__file__).with_name("session_loader.c")
_SHARED_OBJECTS = ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")
_SHOWN_CHARACTERS = 2000
# TF_Code -> its name, such as 3 -> INVALID_ARGUMENT.
_CODES = {getattr(tf.errors, name): name for name in dir(tf.errors) if name.isupper()}


class SessionError(RuntimeError):
    """The C++ loader refused the SavedModel, or failed to run it."""


def build_session_loader(folder: str | os.PathLike[str] | None = None) -> Path:
    """Compiles the C program with $CC, or gcc, against the installed TensorFlow, once.

    It lies in `folder`, by default kbert/session_loader in $XDG_CACHE_HOME or ~/.cache, under a
    name for source, TensorFlow and compiler. Raises FileNotFoundError without a compiler or
    TensorFlow's C++ library, and SessionError with the compiler's output.
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
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    parent = Path(base, "kbert", "session_loader") if folder is None else Path(folder)
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


class Session(AbstractContextManager["Session"]):
    """A SavedModel in a process of its own without Python. A context manager.

    `path` is as for `find_export`. `libraries` are shared objects with ops to load first; by
    default those of tensorflow-text that the graph needs, which TF Serving has linked. For `folder`
    see `build_session_loader`. Raises SessionError, with TensorFlow's message, if the loader
    refuses it.
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
            libraries = libraries_with(ops_of(meta_graph.graph_def))
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
        """Calls a signature once; inputs and outputs are batches (B, ...), strings are bytes.

        Raises ValueError for a call that is not the signature's, and SessionError if the graph
        fails.
        """
        called = checked_call(self.signatures, signature, inputs)
        arrays = {name: tensor.batch(name, inputs[name]) for name, tensor in called.inputs.items()}
        return self.ask(signature, arrays)

    def ask(self, signature: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Calls a signature with arrays of any shape, unchecked, as a server does; see `run`."""
        called = self.signatures[signature]
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
        answers: Any = self._process.stdout
        return {name: read_tensor(answers) for name in called.outputs}

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()
        self._log.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _read_status(self) -> None:
        answers: Any = self._process.stdout
        try:
            code = read_count(answers)
            message = read_name(answers) if code else ""
        except EOFError as error:
            raise SessionError(f"The loader ended early: {self._last_words()}") from error
        if code:
            raise SessionError(f"{_CODES.get(code, code)}: {message}")

    def _last_words(self) -> str:
        code = self._process.wait()
        self._log.seek(0)
        words = self._log.read().decode("utf-8", "replace")
        return f"status {code}, {words[-_SHOWN_CHARACTERS:]}"


# Serialized tensors, in the format of `session_loader.c`; see its first comment.
_INT32 = struct.Struct("=i")
_INT64 = struct.Struct("=q")


def write_count(stream: BinaryIO, count: int) -> None:
    """Writes a count as int32."""
    stream.write(_INT32.pack(count))


def write_name(stream: BinaryIO, name: str) -> None:
    """Writes a name."""
    content = name.encode("utf-8")
    stream.write(_INT32.pack(len(content)) + content)


def write_tensor(stream: BinaryIO, array: np.ndarray, dtype: tf.DType) -> None:
    """Writes numbers of `dtype`, or str and bytes; lone surrogates of a str become U+FFFD."""
    write_count(stream, dtype.as_datatype_enum)
    write_count(stream, array.ndim)
    stream.write(struct.pack(f"={array.ndim}q", *array.shape))
    if dtype != tf.string:
        stream.write(np.ascontiguousarray(array).tobytes())
        return
    for item in array.ravel():
        if isinstance(item, str):
            item = without_surrogates(item, "a text", "replace").encode()
        stream.write(_INT64.pack(len(item)) + bytes(item))


def read_count(stream: BinaryIO) -> int:
    """Reads an int32; this and the other readers raise `EOFError` where the stream ends."""
    return int(_INT32.unpack(_read(stream, 4))[0])


def read_name(stream: BinaryIO) -> str:
    """Reads a name."""
    return _read(stream, read_count(stream)).decode("utf-8", "replace")


def read_tensor(stream: BinaryIO) -> np.ndarray:
    """Reads a tensor as an array of its dtype, or of bytes objects."""
    dtype = tf.dtypes.as_dtype(read_count(stream))
    rank = read_count(stream)
    shape = struct.unpack(f"={rank}q", _read(stream, 8 * rank))
    count = int(np.prod(shape, dtype=np.int64))
    if dtype != tf.string:
        numbers: Any = np.dtype(dtype.as_numpy_dtype)
        return np.frombuffer(_read(stream, count * numbers.itemsize), numbers).reshape(shape)
    strings = np.empty(count, dtype=object)
    for index in range(count):
        strings[index] = _read(stream, _INT64.unpack(_read(stream, 8))[0])
    return strings.reshape(shape)


def _read(stream: BinaryIO, size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError(f"The stream must have {size} more bytes. Received: {len(content)}")
    return content
