"""`CaptioningConfig`: all options of a captioning run, their defaults and contradictions."""

from dataclasses import dataclass

from kbert.architectures import CAPTIONERS, IMAGE_TRANSFORMER, SHOW_ATTEND_TELL, check_known
from kbert.options.configuration import (
    TRAINING,
    EpochOptions,
    OptimizerOptions,
    PlacementOptions,
    RunOptions,
    check_default,
    wrong,
)
from kbert.options.kinds import Kind, choice, column, flag, number, option, rate, text, whole

TASK = "captioning"
# Metrics by which epochs may be compared, the default first.
MONITORED = ("loss", "perplexity", "accuracy", "bleu_4", "chrf", "rouge_l")
# These need a search, which takes longer than all of the others together.
SEARCHED = ("bleu_4", "chrf", "rouge_l")
PARTS = ("train", "validation", "test")
# Options of learning subwords, without effect where a subword model is given.
_LEARNED = ("subword_type", "vocabulary_size", "normalization")
# Options that only one architecture has; None is its own default.
ARCHITECTURE_OPTIONS = {
    SHOW_ATTEND_TELL: ("embedding_dim", "attention_dim", "attention"),
    IMAGE_TRANSFORMER: (
        *("num_encoder_layers", "num_decoder_layers", "num_heads", "intermediate_dim"),
    ),
}
_DATA, _IMAGES, _SUBWORDS, _MODEL = "Data", "Images", "Subwords", "Model"
_SEARCH = "Search"
_TABLE = text("a table of captions")
_LEAST_ONE = whole(1, optional=True)
_NOT_BELOW_0 = number("a number, at least 0", lambda v: v >= 0)


def _is_split(value: object) -> bool:
    sizes = str(value).split(",")
    return len(sizes) == len(PARTS) and all(size.strip().isdecimal() for size in sizes)


@dataclass(frozen=True)
class CaptioningConfig(EpochOptions, OptimizerOptions, PlacementOptions, RunOptions):
    """The configuration of a run that trains a captioner; see `docs/captioning.md`."""

    needed = ("train", "images", "output")

    task: str = option(TASK, choice(TASK), _DATA, "What is learned.")
    train: str | None = option(
        None, _TABLE, _DATA,
        "Captions to learn from: CSV, TSV or JSON Lines with the columns image and caption, or "
        "Flickr8k's files (also .gz). An image has as many rows as captions.",
    )
    images: str | None = option(None, text("a folder"), _DATA, "Folder of the image files.")
    image_column: str | int = option(
        "image",
        column(),
        _DATA,
        "Column of the files' names, by name, or by index in a file without a header.",
    )
    caption_column: str | int = option("caption", column(), _DATA, "Column of the captions.")
    validation: str | None = option(
        None, _TABLE, _DATA, "Captions to be measured after each epoch, as `train`."
    )
    test: str | None = option(
        None, _TABLE, _DATA, "Captions to be measured once, at the end, as `train`."
    )
    split: str | None = option(
        None, Kind("three numbers of images, such as 6000,1000,1000", _is_split, optional=True),
        _DATA,
        "Instead of validation and test: divide the images of train, sorted by name, into so many "
        "for training, validation and test.",
    )
    network: str = option(
        "MobileNetV2", text("a network"), _IMAGES,
        "The network that sees the images: a name of keras.applications, or a .keras file.",
    )
    network_layer: str = option(
        "block_13_expand_relu", text("a layer"), _IMAGES, "The layer whose output is the map."
    )
    network_weights: str = option(
        "imagenet", text("imagenet, none or a file"), _IMAGES,
        "Of keras.applications: imagenet (downloaded), none (random ones), or a file.",
    )
    preprocessing: str = option(
        "none", choice("none", "tf", "torch", "caffe"), _IMAGES,
        "Of a .keras file: how pixels in 0..255 are scaled before it.",
    )
    image_size: int = option(
        224, whole(16), _IMAGES, "Height and width of images, of keras.applications."
    )
    image_fit: str = option(
        "squeeze", choice("squeeze", "crop"), _IMAGES,
        "squeeze shows the whole image in another aspect ratio, crop its center.",
    )
    train_network: bool = option(False, flag(), _IMAGES, "Whether the network learns too.")
    features: str | None = option(
        None, text("a folder"), _IMAGES,
        "Keep what a frozen network sees in this folder, for the next run.",
    )
    subword_type: str = option("bpe", choice("bpe", "unigram"), _SUBWORDS, "bpe or unigram.")
    vocabulary_size: int = option(4000, whole(5), _SUBWORDS, "Pieces of the captions.")
    normalization: str = option(
        "nfkc_cf", choice("nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf", "identity"), _SUBWORDS,
        "What SentencePiece does to captions first; those with cf make letters lower case.",
    )
    subwords: str | None = option(
        None, text("a .model file"), _SUBWORDS, "A ready SentencePiece model instead."
    )
    architecture: str = option(
        SHOW_ATTEND_TELL, text("an architecture"), _MODEL,
        "show-attend-tell, image-transformer, or another that was added.",
    )
    hidden_dim: int = option(512, whole(1), _MODEL, "Width of the decoder.")
    embedding_dim: int | None = option(
        None, _LEAST_ONE, _MODEL, "show-attend-tell: width of embeddings; by default hidden_dim."
    )
    attention_dim: int | None = option(
        None, _LEAST_ONE, _MODEL,
        "show-attend-tell: hidden width of the scores; by default hidden_dim.",
    )
    attention: str | None = option(
        None, choice("soft", "hard", "mean", optional=True), _MODEL,
        "show-attend-tell: soft (the mean of all places by their weights), hard (one place) or "
        "mean (all places alike, no attention); by default soft.",
    )
    num_encoder_layers: int | None = option(
        None, whole(0, optional=True), _MODEL, "image-transformer: by default 0."
    )
    num_decoder_layers: int | None = option(
        None, _LEAST_ONE, _MODEL, "image-transformer: by default 3."
    )
    num_heads: int | None = option(None, _LEAST_ONE, _MODEL, "image-transformer: by default 4.")
    intermediate_dim: int | None = option(
        None, _LEAST_ONE, _MODEL, "image-transformer: by default 1024."
    )
    max_sequence_length: int = option(
        64, whole(4), _MODEL, "Most pieces of a caption, the end included."
    )
    dropout: float = option(0.5, rate(), _MODEL, "Dropout rate of the decoder.")
    feature_dropout: float = option(
        0.0, rate(), _MODEL,
        "Dropout rate of the network's channels, each at all places of an image or at none.",
    )
    epochs: int = option(20, whole(1), TRAINING, "Passes over the captions.")
    batch_size: int = option(64, whole(1), TRAINING, "Captions a batch.")
    learning_rate: float = option(
        1e-3, number("a number above 0", lambda v: v > 0), TRAINING, "Peak of the rate."
    )
    warmup_share: float = option(
        0.05, rate(), TRAINING, "Share of the updates in which the rate rises; then it falls to 0."
    )
    label_smoothing: float = option(0.0, rate(), TRAINING, "Share of the target given to all.")
    attention_penalty: float = option(
        1.0, _NOT_BELOW_0, TRAINING,
        "show-attend-tell: weight of the penalty for places that a whole caption leaves unseen.",
    )
    monitor: str = option(
        "loss", choice(*MONITORED), TRAINING, f"What epochs compare by: {', '.join(MONITORED)}."
    )
    beam_size: int = option(5, whole(1), _SEARCH, "Hypotheses of the search; 1 is greedy.")
    length_penalty: str = option(
        "power", choice("power", "gnmt"), _SEARCH, "power: n^a; gnmt: ((5 + n) / 6)^a."
    )
    alpha: float = option(1.0, _NOT_BELOW_0, _SEARCH, "The exponent a of the length penalty.")
    nbest: int = option(1, whole(1), _SEARCH, "Captions of an image, the best first.")
    max_length: int = option(32, whole(1), _SEARCH, "Most pieces of a caption that is written.")

    @property
    def split_sizes(self) -> list[int] | None:
        """Numbers of images for training, validation and test, or None."""
        return None if self.split is None else [int(size) for size in self.split.split(",")]

    def check_together(self) -> None:
        """Checks the values against each other."""
        for name in ("train", "images"):
            if getattr(self, name) is None:
                raise wrong(name, "given", None)
        if self.split is not None:
            check_default(self, ("validation", "test"), "with split")
            if 0 in (self.split_sizes or ()):
                raise wrong("split", "numbers of at least 1", self.split)
        elif self.validation is None:
            check_default(self, ("early_stopping", "monitor"), "where there is no validation")
        check_known(self.architecture, CAPTIONERS)
        for architecture, names in ARCHITECTURE_OPTIONS.items():
            if architecture != self.architecture:
                check_default(self, names, f"with architecture={self.architecture}")
        if self.network.endswith(".keras"):
            check_default(self, ("network_weights", "image_size"), "with a .keras file")
        else:
            check_default(self, ("preprocessing",), "with a network of keras.applications")
        if self.subwords is not None:
            check_default(self, _LEARNED, "with subwords, a ready model")
        if self.features is not None and self.train_network:
            raise wrong("features", "left out with train_network: they change", self.features)
        if self.nbest > self.beam_size:
            raise wrong("nbest", f"at most beam_size={self.beam_size}", self.nbest)
        if self.max_length > self.max_sequence_length:
            most = f"at most max_sequence_length={self.max_sequence_length}"
            raise wrong("max_length", most, self.max_length)
        super().check_together()
