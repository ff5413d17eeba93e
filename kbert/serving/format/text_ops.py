"""The ops of tensorflow-text, which TF Serving links beside TensorFlow's own.

Source: tensorflow/text 2.20, target `ops_lib` of `tensorflow_text/BUILD`, which
`SUPPORTED_TENSORFLOW_OPS` of tensorflow/serving names; the libraries are those of the wheel.
`tests/serving/format/test_text_ops.py` reads the ops out of the installed libraries again.
"""

import importlib.util
from collections.abc import Iterable
from pathlib import Path

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
    """The installed libraries that register some of these ops.

    Args:
        ops: Names of ops; those of TensorFlow itself need no library.

    Returns:
        Paths of shared objects, in a fixed order.

    Raises:
        ImportError: tensorflow-text is not installed.
    """
    wanted = set(ops)
    spec = importlib.util.find_spec("tensorflow_text")
    if spec is None or spec.origin is None:
        raise ImportError("The ops of tensorflow-text need it: pip install tensorflow-text")
    folder = Path(spec.origin).parent / "python"
    return [folder / name for name, registered in LIBRARIES.items() if wanted & set(registered)]
