"""`tokenizer.json` of a model's tokenizer, for Hugging Face's `tokenizers` in any language.

A file says how a text or pair becomes the ids of a model: also how long texts are cut, and how a
batch is padded. Source: the format as `tokenizers` 0.21 to 0.23 writes it.
"""

import json
from typing import Any

from kbert.text.vocabulary import CONTINUES
from kbert.text.wordpiece.normalizer import MAX_CHARACTERS_PER_WORD


def tokenizer_json(
    tokenizer: Any, max_sequence_length: int, stride: int | None = None, has_questions: bool = False
) -> str:
    """Returns the content of the file.

    Special tokens that are typed in a text are those tokens only where the tokenizer takes them so.

    Args:
        tokenizer: a `WordPiece` or `ByteLevelBPE`.
        max_sequence_length: the most tokens of a sequence.
        stride: the tokens that neighbouring windows of a long text share; None for texts that are
            cut.
        has_questions: whether windows are of the second text of a pair, each with all of the first.
    """
    vocabulary = tokenizer.vocabulary
    parts = _byte_level(tokenizer) if vocabulary.special_tokens.byte_level else _words(tokenizer)
    cut = {
        "direction": "Right",
        "max_length": max_sequence_length,
        "strategy": "OnlySecond" if has_questions else "LongestFirst",
        "stride": stride or 0,
    }
    padding = {
        "strategy": "BatchLongest",
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": vocabulary.padding_id,
        "pad_type_id": 0,
        "pad_token": vocabulary.special_tokens.padding,
    }
    content = {"version": "1.0", "truncation": cut, "padding": padding, **parts}
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _added(tokenizer: Any) -> list[dict[str, Any]]:
    """Returns the tokens that are found as they are in a text."""
    vocabulary = tokenizer.vocabulary
    special = vocabulary.special_tokens
    names = special.names if vocabulary.has_mask else special.required
    found = names if tokenizer.special_tokens_in_text else ()
    ids = {vocabulary.id_of(name): name for name in found}
    return [
        {
            "id": number,
            "content": name,
            "single_word": False,
            "lstrip": special.byte_level and name == special.mask,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for number, name in sorted(ids.items())
    ]


def _around(tokenizer: Any, kind: str, **settings: Any) -> dict[str, Any]:
    vocabulary = tokenizer.vocabulary
    special = vocabulary.special_tokens
    ends = {"sep": [special.sep, vocabulary.sep_id], "cls": [special.cls, vocabulary.cls_id]}
    return {"type": kind, **ends, **settings}


def _ids(tokenizer: Any) -> dict[str, int]:
    return {token: number for number, token in enumerate(tokenizer.vocabulary.tokens)}


def _words(tokenizer: Any) -> dict[str, Any]:
    """Returns the parts of a WordPiece."""
    return {
        "added_tokens": _added(tokenizer),
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": tokenizer.handle_cjk,
            "strip_accents": tokenizer.strip_accents,
            "lowercase": tokenizer.lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": _around(tokenizer, "BertProcessing"),
        "decoder": {"type": "WordPiece", "prefix": CONTINUES, "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": tokenizer.vocabulary.special_tokens.unknown,
            "continuing_subword_prefix": CONTINUES,
            "max_input_chars_per_word": MAX_CHARACTERS_PER_WORD,
            "vocab": _ids(tokenizer),
        },
    }


def _byte_level(tokenizer: Any) -> dict[str, Any]:
    """Returns the parts of a byte-level BPE."""
    trims = {"trim_offsets": tokenizer.trim_offsets}
    prefix = {"add_prefix_space": tokenizer.add_prefix_space}
    level = {"type": "ByteLevel", **prefix, **trims, "use_regex": True}
    return {
        "added_tokens": _added(tokenizer),
        "normalizer": None,
        "pre_tokenizer": level,
        "post_processor": _around(tokenizer, "RobertaProcessing", **trims, **prefix),
        "decoder": level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": _ids(tokenizer),
            "merges": [list(merge) for merge in tokenizer.merges],
        },
    }
