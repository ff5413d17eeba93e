"""Architectures of encoders, of encoder-decoders and of captioners, a line each: names alone.

Their modules are imported on demand, so that every room may ask here. Weights on disk say which
architecture they are of; those that say none were written when there was one of each kind. Another
package may add its own to the tables.
"""

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class EncoderParts:
    """The parts of an encoder, by their dotted names.

    Attributes:
        model: the class, which has the protocol `kbert.models.encoder.Encoder`.
        layout: the module whose `LAYOUT` describes its weights on disk; None for the one in
            `kbert.checkpoints.encoders` that has the name of the architecture.
        byte_level: whether a new one reads the tokens of a byte-level BPE, not of WordPiece.
    """

    model: str
    layout: str | None = None
    byte_level: bool = False


ENCODERS = {
    "bert": EncoderParts("kbert.models.bert.Bert"),
    "albert": EncoderParts("kbert.models.albert.Albert"),
    "roberta": EncoderParts("kbert.models.roberta.Roberta", byte_level=True),
    "distilbert": EncoderParts("kbert.models.distilbert.DistilBert"),
    "electra": EncoderParts("kbert.models.electra.Electra"),
}
ENCODER_DECODERS = {
    "transformer": "kbert.models.encoder_decoders.transformer.Transformer",
    "bert-fused": "kbert.models.encoder_decoders.bert_fused_transformer.BertFusedTransformer",
    "rnn": "kbert.models.encoder_decoders.rnn.RnnEncoderDecoder",
    "bahdanau": "kbert.models.encoder_decoders.bahdanau.Bahdanau",
    "convs2s": "kbert.models.encoder_decoders.convs2s.ConvS2S",
}
CAPTIONERS = {
    "show-attend-tell": "kbert.models.captioning.show_attend_tell.ShowAttendTell",
    "image-transformer": "kbert.models.captioning.image_transformer.ImageTransformer",
}
# The architecture of new encoders, and of folders that name none.
BERT = "bert"
ROBERTA = "roberta"
TRANSFORMER = "transformer"
BERT_FUSED = "bert-fused"
RNN = "rnn"
BAHDANAU = "bahdanau"
CONVS2S = "convs2s"
SHOW_ATTEND_TELL = "show-attend-tell"
IMAGE_TRANSFORMER = "image-transformer"


def check_known(name: Any, known: Iterable[str], source: str = "") -> None:
    """Checks the name of an architecture.

    Args:
        name: the name, or what stands in its place.
        known: the names that there are: `ENCODERS`, `ENCODER_DECODERS` or `CAPTIONERS`.
        source: the origin that the error names, a file for example; "" for an argument.

    Raises:
        ValueError: there is no such architecture; the message names those that there are.
    """
    names = list(known)
    if name not in names:
        where = f"{source}: " if source else ""
        raise ValueError(
            f"{where}`architecture` must be one of {', '.join(names)}. "
            f"Received: architecture={name!r}"
        )


def encoder_class(architecture: str) -> Any:
    """Returns the class of an encoder.

    Args:
        architecture: its name in `ENCODERS`.

    Raises:
        ValueError: there is no such architecture.
    """
    check_known(architecture, ENCODERS)
    return loaded(ENCODERS[architecture].model)


def encoder_layout(architecture: str) -> Any:
    """Returns the `EncoderLayout` of an encoder's weights on disk.

    Args:
        architecture: its name in `ENCODERS`.

    Raises:
        ValueError: there is no such architecture.
    """
    check_known(architecture, ENCODERS)
    layout = ENCODERS[architecture].layout or f"kbert.checkpoints.encoders.{architecture}"
    return loaded(f"{layout}.LAYOUT")


def encoder_decoder_class(architecture: str) -> Any:
    """Returns the class of an encoder-decoder.

    Args:
        architecture: its name in `ENCODER_DECODERS`.

    Raises:
        ValueError: there is no such architecture.
    """
    check_known(architecture, ENCODER_DECODERS)
    return loaded(ENCODER_DECODERS[architecture])


def captioner_class(architecture: str) -> Any:
    """Returns the class of the model of a captioner, which decodes the vectors of images.

    Args:
        architecture: its name in `CAPTIONERS`.

    Raises:
        ValueError: there is no such architecture.
    """
    check_known(architecture, CAPTIONERS)
    return loaded(CAPTIONERS[architecture])


def loaded(name: str) -> Any:
    """Imports what a dotted name stands for: `package.module.attribute`."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)
