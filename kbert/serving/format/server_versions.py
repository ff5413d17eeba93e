"""The ops that each version of TF Serving has linked.

TF Serving links all ops of the TensorFlow of its own version and tensorflow-text's `ops_lib`:
2.12.1 of it in Serving 2.16 to 2.19, 2.20 in Serving 2.20. Sources: `tf.raw_ops` of the wheels of
tensorflow-cpu 2.16.2, 2.17.1, 2.18.1, 2.19.1 and 2.20.0, compared; the libraries of tensorflow-text
2.12.1 and 2.20.1, compared; serving PR 4057.
"""

import importlib.util
import re
from collections.abc import Iterable
from pathlib import Path

# Known versions, oldest first.
SERVERS = ("2.16", "2.17", "2.18", "2.19", "2.20")
_CSR = "XlaSparseDenseMatmulCustomCombinerOnTc"
_STATIC = "XlaSparseDenseMatmul"
# Version -> the ops that no older one has.
NEW_OPS: dict[str, frozenset[str]] = {
    "2.17": frozenset(
        {
            "ConvertToListOfSparseCoreCooTensors",
            "ConvertToSparseCoreCsrWrappedCooTensor",
            "GetStatsFromListOfSparseCoreCooTensors",
            "GlobalShuffleDataset",
            "IndexFlatMapDataset",
            "IteratorGetModelProto",
            "SortListOfSparseCoreCooTensors",
            "WeightedFlatMapDataset",
            f"{_STATIC}GradWithAdagradAndStaticBufferSize",
            f"{_STATIC}GradWithAdagradMomentumAndStaticBufferSize",
            f"{_STATIC}GradWithAdamAndStaticBufferSize",
            f"{_STATIC}GradWithFtrlAndStaticBufferSize",
            f"{_STATIC}GradWithSgdAndStaticBufferSize",
            f"{_STATIC}WithStaticBufferSize",
        }
    ),
    "2.18": frozenset({"CheckPinned", f"{_STATIC}GradWithCsrInput"}),
    "2.19": frozenset(),
    "2.20": frozenset(
        {
            "DecodeWebP",
            "TPUDummyInput",
            f"{_CSR}GradWithAdagradAndCsrInput",
            f"{_CSR}GradWithAdagradMomentumAndCsrInput",
            f"{_CSR}GradWithAdamAndCsrInput",
            f"{_CSR}GradWithCsrInput",
            f"{_CSR}GradWithFtrlAndCsrInput",
            f"{_CSR}GradWithSgdAndCsrInput",
            f"{_CSR}WithCsrInput",
            "TFText>RoundRobinGenerateMasks",
            "TFText>RoundRobinTrim",
            "TFText>Utf8Binarize",
        }
    ),
}


def server_number_or_zero(version: str) -> tuple[int, int]:
    """Returns `server_number`, or (0, 0) for a version that is older than the known ones."""
    try:
        return server_number(version)
    except ValueError:
        return 0, 0


def server_number(version: str) -> tuple[int, int]:
    """Parses a version such as "2.20" or "2.20.0" to a pair that can be compared.

    Raises:
        ValueError: It is not a version, or older than the known ones.
    """
    match = re.match(r"(\d+)\.(\d+)(\.|$)", version)
    number = (int(match[1]), int(match[2])) if match else (0, 0)
    if number < _number(SERVERS[0]):
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

    Raises:
        ValueError: `server` is not a version, or older than the known ones.
    """
    number = server_number(server)
    used = set(ops)
    return {
        op: version
        for version, new in NEW_OPS.items()
        if _number(version) > number
        for op in sorted(used & new)
    }


def _number(version: str) -> tuple[int, int]:
    major, minor = version.split(".")
    return int(major), int(minor)


# Library of the wheel -> the ops that it registers.
LIBRARIES: dict[str, tuple[str, ...]] = {
    "metrics/_text_similarity_metric_ops.so": ("RougeL",),
    "ops/_boise_offset_converter.so": ("TFText>BoiseTagsToOffsets", "TFText>OffsetsToBoiseTags"),
    "ops/_byte_splitter.so": ("TFText>ByteSplitByOffsets", "TFText>ByteSplitWithOffsets"),
    "ops/_constrained_sequence_op.so": ("ConstrainedSequence",),
    "ops/_fast_bert_normalizer.so": ("FastBertNormalize",),
    "ops/_fast_sentencepiece_tokenizer.so": (
        "TFText>FastSentencepieceDetokenize",
        "TFText>FastSentencepieceTokenize",
    ),
    "ops/_fast_wordpiece_tokenizer.so": (
        "FastWordpieceTokenizeWithOffsets",
        "TFText>FastWordpieceDetokenize",
    ),
    "ops/_mst_ops.so": ("MaxSpanningTree",),
    "ops/_ngrams_op.so": ("TFText>NgramsStringJoin",),
    "ops/_normalize_ops.so": (
        "CaseFoldUTF8",
        "FindSourceOffsets",
        "NormalizeUTF8",
        "NormalizeUTF8WithOffsetsMap",
    ),
    "ops/_phrase_tokenizer.so": ("PhraseTokenize", "TFText>PhraseDetokenize"),
    "ops/_regex_split_ops.so": ("RegexSplitWithOffsets",),
    "ops/_sentence_breaking_ops.so": ("SentenceFragments",),
    "ops/_sentencepiece_tokenizer.so": (
        "SentencepieceDetokenizeOp",
        "SentencepieceIdToStringOp",
        "SentencepieceOp",
        "SentencepieceStringToIdOp",
        "SentencepieceTokenizeOp",
        "SentencepieceTokenizeWithOffsetsOp",
        "SentencepieceVocabSizeOp",
    ),
    "ops/_split_merge_from_logits_tokenizer.so": ("TokenizerFromLogits",),
    "ops/_split_merge_tokenizer.so": ("SplitMergeTokenizeWithOffsets",),
    "ops/_state_based_sentence_breaker_op.so": ("SentenceFragmentsV2",),
    "ops/_trimmer_ops.so": ("TFText>RoundRobinGenerateMasks", "TFText>RoundRobinTrim"),
    "ops/_unicode_script_tokenizer.so": ("UnicodeScriptTokenizeWithOffsets",),
    "ops/_utf8_binarize_op.so": ("TFText>Utf8Binarize",),
    "ops/_whitespace_tokenizer.so": ("WhitespaceTokenizeWithOffsets",),
    "ops/_whitespace_tokenizer_v2.so": ("TFText>WhitespaceTokenizeWithOffsetsV2",),
    "ops/_wordpiece_tokenizer.so": ("WordpieceTokenizeWithOffsets",),
}
TEXT_OPS = frozenset(op for ops in LIBRARIES.values() for op in ops)
# They read ICU's data at run time, which a server may lack (tensorflow/text issue 281).
ICU_OPS = frozenset(LIBRARIES["ops/_normalize_ops.so"]) - {"FindSourceOffsets"}


def libraries_with(ops: Iterable[str]) -> list[Path]:
    """Returns the installed libraries that register some of these ops, in a fixed order.

    Raises:
        ImportError: tensorflow-text is not installed.
    """
    wanted = set(ops)
    spec = importlib.util.find_spec("tensorflow_text")
    if spec is None or spec.origin is None:
        raise ImportError("The ops of tensorflow-text need it: pip install tensorflow-text")
    folder = Path(spec.origin).parent / "python"
    return [folder / name for name, registered in LIBRARIES.items() if wanted & set(registered)]
