"""GPT-2's byte-level BPE, the tokenizer of RoBERTa, as a TensorFlow graph."""

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from kbert.architectures import loaded
from kbert.storage.files import make_folder, write_atomically
from kbert.text.byte_level_bpe import files
from kbert.text.byte_level_bpe.merge_table import build_merge_table
from kbert.text.byte_level_bpe.segments import NOT_SPECIAL, Segments, segments_of, whole_texts
from kbert.text.byte_level_bpe.token_places import TokenPlaces
from kbert.text.byte_level_bpe.word_encoder import WordEncoder
from kbert.text.byte_level_bpe.words import WordSplitter
from kbert.text.graph_functions import cached_graph, checked_text
from kbert.text.tokenizer import TokenOffsets, check_flags
from kbert.text.vocabulary import SpecialTokens, Vocabulary

# Takes the place of a special token: one word, and one token in any vocabulary.
_ONE_TOKEN = "x"


@keras.saving.register_keras_serializable("kbert")
class ByteLevelBPE:
    """Maps text to token ids, like the tokenizers of GPT-2 and RoBERTa.

    The ids, and the offsets, are those of Hugging Face `tokenizers` 0.23, `ByteLevelBPETokenizer`
    with RoBERTa's post-processor, for any text. All of it is graph code of core ops and of
    tensorflow-text's RegexSplitWithOffsets, for tf.data, tf.function and SavedModels alike; the
    vocabulary and the merges are in the graph as constants.

    Nothing of a text is lost or changed, but that bytes that are not UTF-8 are decoded like
    `bytes.decode("utf-8", "replace")`: the resulting U+FFFD are encoded, like those that a user
    typed, and have the offsets of the original bytes.

    Use it on batches: `dataset.batch(256).map(tokenizer.tokenize, num_parallel_calls=...)`.

    Args:
        vocabulary: The tokens, with `ROBERTA_TOKENS` or others that are `byte_level`; one for each
            of the 256 bytes is required.
        merges: Pairs of tokens, in the order in which they are merged, as `merges.txt` lists them.
        add_prefix_space: Whether a text that begins with no space gets one, so that its first word
            is the same token as within a text. Models of RoBERTa were trained without.
        special_tokens_in_text: Whether "<mask>", "</s>" and the other special tokens, typed in the
            text, are those tokens; "<mask>" then absorbs white space before it. Otherwise they are
            plain text, as a user's input should be.
        trim_offsets: Whether offsets leave out the spaces at the ends of a token, as RoBERTa's do:
            a word then has the place of its letters, not of the space before it. A token of nothing
            but spaces is empty at its end. With `add_prefix_space` a single space at the start of
            a text is kept.

    Raises:
        TypeError: `vocabulary` is no Vocabulary, a merge no pair of strings, or another argument
            no bool.
        ValueError: The vocabulary is not of bytes or lacks one; or a merge is there twice, or names
            or makes a token that is not in the vocabulary.

    Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.2,
    and its `encoder.py`.
    """

    lowercase = False
    rules: tuple[str, ...] = ("add_prefix_space", "trim_offsets")

    def __init__(
        self,
        vocabulary: Vocabulary,
        merges: Sequence[Sequence[str]],
        add_prefix_space: bool = False,
        special_tokens_in_text: bool = False,
        trim_offsets: bool = True,
    ) -> None:
        if not isinstance(vocabulary, Vocabulary):
            raise TypeError(
                f"`vocabulary` must be a kbert.Vocabulary. Received: vocabulary={vocabulary!r}"
            )
        if not vocabulary.special_tokens.byte_level:
            raise ValueError(
                "`vocabulary` must be one of a byte-level BPE, with `special_tokens` such as "
                f"ROBERTA_TOKENS. Received: {vocabulary!r} with {vocabulary.special_tokens}"
            )
        check_flags(add_prefix_space=add_prefix_space, trim_offsets=trim_offsets)
        check_flags(special_tokens_in_text=special_tokens_in_text)
        self.vocabulary = vocabulary
        self.merges = tuple(tuple(merge) for merge in merges)
        self.add_prefix_space = add_prefix_space
        self.special_tokens_in_text = special_tokens_in_text
        self.trim_offsets = trim_offsets
        self._encoder = WordEncoder(vocabulary, build_merge_table(vocabulary, self.merges))
        self._splitter = WordSplitter()
        self._places = TokenPlaces(vocabulary, trim_offsets, add_prefix_space)

    @classmethod
    def from_pretrained(
        cls, name_or_directory: str | os.PathLike[str], **kwargs: Any
    ) -> "ByteLevelBPE":
        """Makes the tokenizer of a published encoder, or of the folder of a model.

        Args:
            name_or_directory: A known name, an `org/name` of the Hugging Face hub, or a directory,
                as for `kbert.Bert.from_pretrained`.
            **kwargs: Arguments of the constructor that replace the checkpoint's, such as
                `special_tokens_in_text`.

        Raises:
            ValueError: It is no checkpoint, has no vocabulary, or one of WordPiece.
            FileNotFoundError: The directory or name does not exist.
            TypeError: An argument is unknown.
        """
        read = loaded("kbert.pipelines.tokenizers.pretrained_tokenizer")
        found: ByteLevelBPE = read(name_or_directory, cls, **kwargs)
        return found

    @classmethod
    def from_files(
        cls,
        vocabulary_file: str | os.PathLike[str],
        merges_file: str | os.PathLike[str],
        **kwargs: Any,
    ) -> "ByteLevelBPE":
        """Makes the tokenizer of a `vocab.json` and a `merges.txt`, as RoBERTa is published with.

        Args:
            vocabulary_file: JSON, token -> id, with the ids from 0 on without a gap.
            merges_file: Two tokens a line with a space between them; a line "#version: 0.2" first.
            **kwargs: Other arguments of the constructor.

        Raises:
            FileNotFoundError: A file does not exist.
            ValueError: A file is not of this format, a special token or a byte is missing, or the
                merges are those of another vocabulary. The message names the file, and its line.
        """
        content = files.content_of(vocabulary_file, "vocabulary_file")
        vocabulary = files.parse_vocabulary(content, str(vocabulary_file))
        content = files.content_of(merges_file, "merges_file")
        return cls(vocabulary, files.parse_merges(content, str(merges_file), vocabulary), **kwargs)

    @classmethod
    def from_tokenizer_file(cls, path: str | os.PathLike[str], **kwargs: Any) -> "ByteLevelBPE":
        """Makes the tokenizer of a `tokenizer.json` of Hugging Face.

        Args:
            path: The file. It has `add_prefix_space` and `trim_offsets` too.
            **kwargs: Other arguments of the constructor, which count before the file.

        Raises:
            FileNotFoundError: The file does not exist.
            ValueError: The file is of another kind of tokenizer, or of a byte-level BPE that this
                class does not have. The message names the file, what must be there and what is.
        """
        return cls._from_tokenizer(files.content_of(path, "path"), str(path), kwargs)

    @classmethod
    def from_contents(cls, contents: Mapping[str, bytes], **kwargs: Any) -> "ByteLevelBPE":
        """Makes the tokenizer of the files of a checkpoint, by their names.

        Args:
            contents: `vocab.json` with `merges.txt`, as `files` returns them, or `tokenizer.json`.
            **kwargs: Other arguments of the constructor.

        Raises:
            ValueError: A file is missing, or is not what `from_files` and `from_tokenizer_file`
                read.
        """
        if files.VOCABULARY_FILE in contents and files.MERGES_FILE in contents:
            vocabulary = files.parse_vocabulary(
                contents[files.VOCABULARY_FILE], files.VOCABULARY_FILE
            )
            merges = files.parse_merges(contents[files.MERGES_FILE], files.MERGES_FILE, vocabulary)
            return cls(vocabulary, merges, **kwargs)
        if files.TOKENIZER_FILE in contents:
            content = contents[files.TOKENIZER_FILE]
            return cls._from_tokenizer(content, files.TOKENIZER_FILE, kwargs)
        raise ValueError(
            "`contents` must have vocab.json and merges.txt, or tokenizer.json. "
            f"Received: {sorted(contents)}"
        )

    @classmethod
    def _from_tokenizer(cls, content: bytes, file: str, kwargs: dict[str, Any]) -> "ByteLevelBPE":
        found = files.parse_tokenizer(content, file, kwargs.get("special_tokens_in_text", False))
        settings = {
            "add_prefix_space": found.add_prefix_space,
            "trim_offsets": found.trim_offsets,
        }
        return cls(found.vocabulary, found.merges, **settings | kwargs)

    def files(self) -> dict[str, bytes]:
        """Returns `vocab.json` and `merges.txt` by their names, for `from_contents`.

        They are, byte for byte, what `save_vocabulary` of transformers' fast tokenizers writes.
        """
        return files.contents(self.vocabulary, self.merges)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes `files` into `folder`, which is made if it is missing."""
        target = Path(folder)
        make_folder(target)
        for name, content in self.files().items():
            write_atomically(target / name, content)

    def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Returns the token ids of each text, without special tokens around it.

        Args:
            text: UTF-8, tf.string (B,).

        Returns:
            RaggedTensor (B, (tokens)), int32.

        Raises:
            TypeError: `text` is not a string tensor.
            ValueError: `text` is not of rank 1.
        """
        return self._run(self._tokenize, checked_text(text))

    def tokenize_with_offsets(self, text: tf.Tensor) -> TokenOffsets:
        """Returns the token ids of each text, and the offsets of each token in the original text.

        Args:
            text: UTF-8, tf.string (B,).

        Returns:
            TokenOffsets: ids, bytes and code points; five RaggedTensors (B, (tokens)), int32. Each
            of several tokens that are parts of one character has the offsets of the character.

        Raises:
            TypeError: `text` is not a string tensor.
            ValueError: `text` is not of rank 1.
        """
        return self._run(self._tokenize_with_offsets, checked_text(text))

    def tokens(self, text: str) -> list[str]:
        """Returns the tokens of `text`, a single str, as the vocabulary spells them."""
        ids = self.tokenize(tf.constant([text])).values
        return [self.vocabulary.tokens[number] for number in ids.numpy().tolist()]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments in JSON's types, the tokens and merges as lists."""
        return {
            "vocabulary": list(self.vocabulary.tokens),
            "special_tokens": dataclasses.asdict(self.vocabulary.special_tokens),
            "merges": [list(merge) for merge in self.merges],
            "add_prefix_space": self.add_prefix_space,
            "special_tokens_in_text": self.special_tokens_in_text,
            "trim_offsets": self.trim_offsets,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "ByteLevelBPE":
        """Makes the tokenizer of a configuration from `get_config`."""
        arguments = dict(config)
        special_tokens = SpecialTokens(**arguments.pop("special_tokens"))
        return cls(**arguments | {"vocabulary": Vocabulary(config["vocabulary"], special_tokens)})

    def _run(self, function: Callable[[tf.Tensor], Any], text: tf.Tensor) -> Any:
        """Calls a function of texts, as a graph even outside of one: it has many small steps."""
        if tf.executing_eagerly():
            specs = [tf.TensorSpec([None], tf.string)]
            return cached_graph(self, function, [], specs)(text)
        return function(text)

    def _tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        segments = self._segments(text)
        tokens, _ = self._encode(segments)
        return tf.RaggedTensor.from_row_splits(
            tokens.values, tf.gather(tokens.row_splits, segments.row_splits), validate=False
        )

    def _tokenize_with_offsets(self, text: tf.Tensor) -> TokenOffsets:
        segments = self._segments(text)
        tokens, is_prefixed = self._encode(segments)
        return self._places.find(text, segments, tokens, is_prefixed)

    def _segments(self, text: tf.Tensor) -> Segments:
        if self.special_tokens_in_text:
            return segments_of(text, self.vocabulary)
        return whole_texts(text)

    def _encode(self, segments: Segments) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Returns tokens, ragged int32 (S, (tokens)), and which segments got a space, bool (S,)."""
        rows = segments.strings
        is_special = segments.special_ids > NOT_SPECIAL
        if self.special_tokens_in_text:
            rows = tf.where(is_special, _ONE_TOKEN, rows)
        is_prefixed = tf.zeros_like(is_special)
        if self.add_prefix_space:
            begin = tf.strings.substr(rows, 0, 1)
            is_prefixed = tf.not_equal(begin, "") & tf.not_equal(begin, " ") & ~is_special
            rows = tf.where(is_prefixed, tf.strings.join([" ", rows]), rows)
        words = self._splitter.split(rows)
        tokens = self._encoder.encode(words.values)
        splits = tf.gather(tokens.row_splits, words.row_splits)
        tokens = tf.RaggedTensor.from_row_splits(tokens.values, splits, validate=False)
        if self.special_tokens_in_text:
            special = tf.gather(segments.special_ids, tokens.value_rowids())
            ids = tf.where(special > NOT_SPECIAL, special, tokens.values)
            tokens = tokens.with_values(ids)
        return tokens, is_prefixed
