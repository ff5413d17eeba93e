"""Check that TF Serving can load and run an export, from its files, without a server.

TF Serving links all ops of the TensorFlow of its own version and tensorflow-text's `ops_lib`:
2.12.1 of it in Serving 2.16 to 2.19, 2.20 in Serving 2.20. Sources: `tf.raw_ops` of the wheels of
tensorflow-cpu 2.16.2, 2.17.1, 2.18.1, 2.19.1 and 2.20.0, compared; the libraries of tensorflow-text
2.12.1 and 2.20.1, compared; serving PR 4057.
"""

import functools
import importlib.util
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbert.serving.format.messages import SavedSignature, read_saved_graph
from kbert.serving.format.version_folders import METADATA_FILE, SAVED_MODEL_FILE, find_export

PYTHON_OPS = ("EagerPyFunc", "PyFunc", "PyFuncStateless")
_COMPILED_ATTRIBUTE = "_XlaMustCompile"
# Prefix of device names in a single process, such as a server.
_LOCAL_TASK = "/job:localhost/replica:0/task:0"
# TensorFlow puts its own saving and restoring on the CPU, on any machine.
_SAVER_FUNCTIONS = ("__inference__traced_save_", "__inference__traced_restore_")
# Known versions of TF Serving, oldest first.
SERVERS = ("2.16", "2.17", "2.18", "2.19", "2.20")
_SPARSE = "XlaSparseDenseMatmul"
_OPTIMIZERS = ("", "WithAdagrad", "WithAdagradMomentum", "WithAdam", "WithFtrl", "WithSgd")
_STATIC = [f"{_SPARSE}Grad{name}AndStaticBufferSize" for name in _OPTIMIZERS if name]
_COMBINER = f"{_SPARSE}CustomCombinerOnTc"
_CSR = [f"{_COMBINER}Grad{name}{'And' if name else 'With'}CsrInput" for name in _OPTIMIZERS]
# Version -> the ops that no older one has.
NEW_OPS: dict[str, frozenset[str]] = {
    "2.17": frozenset(
        "ConvertToListOfSparseCoreCooTensors ConvertToSparseCoreCsrWrappedCooTensor "
        "GetStatsFromListOfSparseCoreCooTensors SortListOfSparseCoreCooTensors "
        "GlobalShuffleDataset IndexFlatMapDataset IteratorGetModelProto "
        "WeightedFlatMapDataset".split()
    ).union([*_STATIC, f"{_SPARSE}WithStaticBufferSize"]),
    "2.18": frozenset({"CheckPinned", f"{_SPARSE}GradWithCsrInput"}),
    "2.19": frozenset(),
    "2.20": frozenset(
        "DecodeWebP TPUDummyInput TFText>RoundRobinGenerateMasks TFText>RoundRobinTrim "
        "TFText>Utf8Binarize".split()
    ).union([*_CSR, f"{_COMBINER}WithCsrInput"]),
}
# A line a library of the wheel, with the ops that it registers.
_LIBRARIES = """
metrics/_text_similarity_metric_ops.so RougeL
ops/_boise_offset_converter.so TFText>BoiseTagsToOffsets TFText>OffsetsToBoiseTags
ops/_byte_splitter.so TFText>ByteSplitByOffsets TFText>ByteSplitWithOffsets
ops/_constrained_sequence_op.so ConstrainedSequence
ops/_fast_bert_normalizer.so FastBertNormalize
ops/_fast_sentencepiece_tokenizer.so TFText>FastSentencepieceDetokenize \
    TFText>FastSentencepieceTokenize
ops/_fast_wordpiece_tokenizer.so FastWordpieceTokenizeWithOffsets TFText>FastWordpieceDetokenize
ops/_mst_ops.so MaxSpanningTree
ops/_ngrams_op.so TFText>NgramsStringJoin
ops/_normalize_ops.so CaseFoldUTF8 FindSourceOffsets NormalizeUTF8 NormalizeUTF8WithOffsetsMap
ops/_phrase_tokenizer.so PhraseTokenize TFText>PhraseDetokenize
ops/_regex_split_ops.so RegexSplitWithOffsets
ops/_sentence_breaking_ops.so SentenceFragments
ops/_sentencepiece_tokenizer.so SentencepieceDetokenizeOp SentencepieceIdToStringOp \
    SentencepieceOp SentencepieceStringToIdOp SentencepieceTokenizeOp \
    SentencepieceTokenizeWithOffsetsOp SentencepieceVocabSizeOp
ops/_split_merge_from_logits_tokenizer.so TokenizerFromLogits
ops/_split_merge_tokenizer.so SplitMergeTokenizeWithOffsets
ops/_state_based_sentence_breaker_op.so SentenceFragmentsV2
ops/_trimmer_ops.so TFText>RoundRobinGenerateMasks TFText>RoundRobinTrim
ops/_unicode_script_tokenizer.so UnicodeScriptTokenizeWithOffsets
ops/_utf8_binarize_op.so TFText>Utf8Binarize
ops/_whitespace_tokenizer.so WhitespaceTokenizeWithOffsets
ops/_whitespace_tokenizer_v2.so TFText>WhitespaceTokenizeWithOffsetsV2
ops/_wordpiece_tokenizer.so WordpieceTokenizeWithOffsets
"""
LIBRARIES: dict[str, tuple[str, ...]] = {
    library: tuple(ops) for library, *ops in map(str.split, _LIBRARIES.strip().splitlines())
}
TEXT_OPS = frozenset(op for ops in LIBRARIES.values() for op in ops)
# oneDNN's ops that TensorFlow and TF Serving have on x86, and `tf.raw_ops` has not.
ONEDNN_OPS = frozenset({"_QuantizedMatMul"})
# They read ICU's data at run time, which a server may lack (tensorflow/text issue 281).
ICU_OPS = frozenset(LIBRARIES["ops/_normalize_ops.so"]) - {"FindSourceOffsets"}


def server_number_or_zero(version: str) -> tuple[int, int]:
    """Returns `server_number`, or (0, 0) for a version that is older than the known ones."""
    try:
        return server_number(version)
    except ValueError:
        return 0, 0


def server_number(version: str) -> tuple[int, int]:
    """Parses a version such as "2.20" or "2.20.0"; ValueError if older than the known ones."""
    match = re.match(r"(\d+)\.(\d+)(\.|$)", version)
    number = (int(match[1]), int(match[2])) if match else (0, 0)
    if number < tuple(map(int, SERVERS[0].split("."))):
        raise ValueError(
            f"`server` must be a version of TF Serving, at least {SERVERS[0]}. "
            f"Received: server={version!r}"
        )
    return number


def least_server(ops: Iterable[str]) -> str:
    """Returns the oldest version of TF Serving that has all these ops linked."""
    used = set(ops)
    needed = [version for version, new in NEW_OPS.items() if used & new]
    return needed[-1] if needed else SERVERS[0]


def ops_missing_in(ops: Iterable[str], server: str) -> dict[str, str]:
    """Returns op -> the first version that has it, of the ops that a server such as "2.18" lacks.
    """
    number = server_number(server)
    used = set(ops)
    return {
        op: version
        for version, new in NEW_OPS.items()
        if server_number(version) > number
        for op in sorted(used & new)
    }


def libraries_with(ops: Iterable[str]) -> list[Path]:
    """Returns the installed libraries of tensorflow-text that register some of these ops."""
    wanted = set(ops)
    spec = importlib.util.find_spec("tensorflow_text")
    if spec is None or spec.origin is None:
        raise ImportError("The ops of tensorflow-text need it: pip install tensorflow-text")
    folder = Path(spec.origin).parent / "python"
    return [folder / name for name, registered in LIBRARIES.items() if wanted & set(registered)]


@dataclass(frozen=True)
class ExportReport:
    """Report of `check_export`, with sizes in bytes.

    `core_ops` are those of TensorFlow itself that the graph uses, `text_ops` those of
    tensorflow-text, which a server must have linked. The server must not be older than
    `tensorflow_version`. Each of `problems` is a sentence, why TF Serving cannot serve it.
    """

    path: Path
    signatures: dict[str, SavedSignature]
    core_ops: tuple[str, ...]
    text_ops: tuple[str, ...]
    tensorflow_version: str
    variable_bytes: int
    other_bytes: int
    problems: tuple[str, ...]

    @property
    def is_servable(self) -> bool:
        """Returns whether no problem was found."""
        return not self.problems


def check_export(path: str | os.PathLike[str]) -> ExportReport:
    """Checks an export against what TF Serving needs; `path` is as for `find_export`.

    Every op must be TensorFlow's or tensorflow-text's and none may call Python or need ICU's data;
    no function may require XLA, no op a device; every tensor of a signature must have the batch as
    its first dimension. It only reads the files, without TensorFlow; to check that the graph runs,
    see `kbert.serving.loading.session_loader`. Raises FileNotFoundError if there is no export, and
    ValueError if its file is not a SavedModel.
    """
    export_dir = find_export(path)
    saved = read_saved_graph(export_dir)
    ops = ops_of(saved.graph)
    sizes = sizes_of(export_dir)
    problems = [
        *op_problems(ops),
        *compilation_problems(saved.graph),
        *device_problems(saved.graph),
        *signature_problems(saved.signatures),
        *file_problems(export_dir, ops),
    ]
    return ExportReport(
        path=export_dir,
        signatures=saved.signatures,
        core_ops=tuple(sorted(ops & (core_ops() | ONEDNN_OPS))),
        text_ops=tuple(sorted(ops & TEXT_OPS)),
        tensorflow_version=saved.tensorflow_version,
        variable_bytes=sizes["weights"],
        other_bytes=sum(sizes.values()) - sizes["weights"],
        problems=tuple(problems),
    )


@functools.cache
def core_ops() -> frozenset[str]:
    """Returns the names of the installed TensorFlow's ops in `tf.raw_ops`, without importing it."""
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.origin is None:
        raise ImportError("Checking an export needs TensorFlow: pip install tensorflow")
    names = Path(spec.origin).parent / "_api" / "v2" / "raw_ops" / "__init__.py"
    imported = r"^from \S+ import (?:\w+ as )?(\w+)"
    return frozenset(re.findall(imported, names.read_text(encoding="utf-8"), re.MULTILINE))


def ops_of(graph: Any) -> set[str]:
    """Returns the ops that a GraphDef and its functions use."""
    ops = {node.op for _, node in nodes_of(graph)}
    return ops - {function.signature.name for function in graph.library.function}


def nodes_of(graph: Any) -> Iterator[tuple[str, Any]]:
    """Yields every node of the graph and of its functions, with the function's name, or ""."""
    yield from (("", node) for node in graph.node)
    for function in graph.library.function:
        yield from ((function.signature.name, node) for node in function.node_def)


def op_problems(ops: set[str]) -> Iterator[str]:
    """Finds ops that no server has, and ops that fail on a server without their data."""
    for op in sorted(ops):
        if op in PYTHON_OPS:
            yield f"The op {op} calls Python, which a server does not have."
        elif op in ICU_OPS:
            yield f"The op {op} reads ICU's data at run time, which a server may not have."
        elif op not in TEXT_OPS | ONEDNN_OPS and op not in core_ops():
            yield f"The op {op} belongs neither to TensorFlow nor to tensorflow-text."


def compilation_problems(graph: Any) -> Iterator[str]:
    """Finds functions that need XLA, off in servers without --xla_cpu_compilation_enabled."""
    compiled = {where or node.name for where, node in nodes_of(graph) if _insists(node.attr)}
    compiled |= {f.signature.name for f in graph.library.function if _insists(f.attr)}
    for name in sorted(compiled):
        yield f"{name} has {_COMPILED_ATTRIBUTE} (jit_compile=True), and a server has XLA off."


def _insists(attributes: Any) -> bool:
    return _COMPILED_ATTRIBUTE in attributes and attributes[_COMPILED_ATTRIBUTE].b


def device_problems(graph: Any) -> Iterator[str]:
    """Finds ops that are pinned to a device."""
    pinned: dict[str, str] = {}
    for where, node in nodes_of(graph):
        device = node.device.removeprefix(_LOCAL_TASK)
        is_saver = not where or where.startswith(_SAVER_FUNCTIONS)
        if device and not (is_saver and device.startswith("/device:CPU:")):
            pinned.setdefault(node.device, where or node.name)
    for device, where in sorted(pinned.items()):
        yield f"{where} is pinned to {device}, which a server may not have."


def signature_problems(signatures: Mapping[str, Any]) -> Iterator[str]:
    """Finds tensors without a batch, which a server cannot join with those of other requests."""
    if not signatures:
        yield "There is no signature to call."
    for name, signature in signatures.items():
        for kind, tensors in (("input", signature.inputs), ("output", signature.outputs)):
            for key, tensor in tensors.items():
                if not tensor.shape or tensor.shape[0] is not None:
                    yield (
                        f"The {kind} {key!r} of the signature {name!r} must have a first dimension "
                        f"that is the batch and may vary. It has the shape {tensor.shape}."
                    )


def file_problems(export_dir: Path, ops: set[str]) -> Iterator[str]:
    """Yields what is missing of the files of the weights, for a graph that has any."""
    if not ops & {"VarHandleOp", "VariableV2"}:
        return
    folder = export_dir / "variables"
    shards = sorted(file.name for file in folder.glob("variables.data-?????-of-?????"))
    count = int(shards[0].rpartition("-")[2]) if shards else 1
    wanted = [f"variables.data-{number:05d}-of-{count:05d}" for number in range(count)]
    for name in ("variables.index", *wanted):
        if not (folder / name).is_file():
            yield f"The file variables/{name} is missing, without which there are no weights."


def sizes_of(export_dir: str | os.PathLike[str]) -> dict[str, int]:
    """Returns the bytes of the weights, of the graph, of assets.extra, and of all other files."""
    sizes = {"weights": 0, "graph": 0, "extra": 0, "other": 0}
    for file in Path(export_dir).rglob("*"):
        if file.is_file():
            sizes[_kind_of(file)] += file.stat().st_size
    return sizes


def _kind_of(file: Path) -> str:
    if file.name.startswith("variables.data-"):
        return "weights"
    if file.name == SAVED_MODEL_FILE:
        return "graph"
    return "extra" if file.parent.name == METADATA_FILE.parent.name else "other"
