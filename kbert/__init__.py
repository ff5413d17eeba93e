"""kbert: BERT with Keras 3, from raw text to answers, in training and in serving.

The public names are loaded when they are first used (PEP 562), so `import kbert` alone imports
neither TensorFlow nor Keras. When Keras is loaded it learns the names of kbert's classes, so that
`keras.models.load_model` reads what they saved.

TensorFlow's own log lines on stderr (`End of sequence`, CPU features, CUDA) are turned off, as
TF_CPP_MIN_LOG_LEVEL=3 does, unless that variable is set or TensorFlow is there already: it reads it
once, when it is imported.
"""

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from kbert.keras_names import when_keras_loads

if TYPE_CHECKING:
    from kbert.models.albert import Albert
    from kbert.models.bert import Bert
    from kbert.models.captioning.feature_extractor import FeatureExtractor
    from kbert.models.captioning.image_transformer import ImageTransformer
    from kbert.models.captioning.show_attend_tell import ShowAttendTell
    from kbert.models.distilbert import DistilBert
    from kbert.models.electra import Electra
    from kbert.models.encoder_decoders.bahdanau import Bahdanau
    from kbert.models.encoder_decoders.bert_fused_transformer import BertFusedTransformer
    from kbert.models.encoder_decoders.convs2s import ConvS2S
    from kbert.models.encoder_decoders.rnn import RnnEncoderDecoder
    from kbert.models.encoder_decoders.transformer import Transformer
    from kbert.models.feature_based import FeatureBasedEncoder
    from kbert.models.roberta import Roberta
    from kbert.serving.export.export import export
    from kbert.serving.export.multi_task_export import export_together
    from kbert.serving.loading.exported import load
    from kbert.serving.loading.pipeline import pipeline
    from kbert.serving.portable.litert_export import export_litert
    from kbert.serving.portable.onnx_export import export_onnx
    from kbert.tasks.captioning.model import Captioner
    from kbert.tasks.classification.model import Classifier
    from kbert.tasks.embedding.model import TextEmbedder
    from kbert.tasks.multi_label.model import MultiLabelClassifier
    from kbert.tasks.multi_task.model import MultiTaskModel
    from kbert.tasks.multiple_choice.model import MultipleChoice
    from kbert.tasks.ner.model import EntityRecognizer
    from kbert.tasks.pretraining.model import MaskedLanguageModel
    from kbert.tasks.question_answering.model import QuestionAnswerer
    from kbert.tasks.regression.model import Regressor
    from kbert.tasks.span_tagging.model import SpanTagger
    from kbert.tasks.translation.model import Translator
    from kbert.text.byte_level_bpe.byte_level_bpe import ByteLevelBPE
    from kbert.text.subword import Subword
    from kbert.text.subword_training import train_subwords
    from kbert.text.vocabulary import Vocabulary
    from kbert.text.wordpiece.wordpiece import WordPiece

__version__ = "0.1.0"

# Public name -> the module that holds it.
_MODULE_OF = {
    "Albert": "kbert.models.albert",
    "Bahdanau": "kbert.models.encoder_decoders.bahdanau",
    "Bert": "kbert.models.bert",
    "BertFusedTransformer": "kbert.models.encoder_decoders.bert_fused_transformer",
    "ByteLevelBPE": "kbert.text.byte_level_bpe.byte_level_bpe",
    "Captioner": "kbert.tasks.captioning.model",
    "Classifier": "kbert.tasks.classification.model",
    "ConvS2S": "kbert.models.encoder_decoders.convs2s",
    "DistilBert": "kbert.models.distilbert",
    "Electra": "kbert.models.electra",
    "EntityRecognizer": "kbert.tasks.ner.model",
    "FeatureBasedEncoder": "kbert.models.feature_based",
    "FeatureExtractor": "kbert.models.captioning.feature_extractor",
    "ImageTransformer": "kbert.models.captioning.image_transformer",
    "MaskedLanguageModel": "kbert.tasks.pretraining.model",
    "MultiLabelClassifier": "kbert.tasks.multi_label.model",
    "MultiTaskModel": "kbert.tasks.multi_task.model",
    "MultipleChoice": "kbert.tasks.multiple_choice.model",
    "QuestionAnswerer": "kbert.tasks.question_answering.model",
    "Regressor": "kbert.tasks.regression.model",
    "RnnEncoderDecoder": "kbert.models.encoder_decoders.rnn",
    "Roberta": "kbert.models.roberta",
    "ShowAttendTell": "kbert.models.captioning.show_attend_tell",
    "SpanTagger": "kbert.tasks.span_tagging.model",
    "Subword": "kbert.text.subword",
    "TextEmbedder": "kbert.tasks.embedding.model",
    "Transformer": "kbert.models.encoder_decoders.transformer",
    "Translator": "kbert.tasks.translation.model",
    "Vocabulary": "kbert.text.vocabulary",
    "WordPiece": "kbert.text.wordpiece.wordpiece",
    "export": "kbert.serving.export.export",
    "export_litert": "kbert.serving.portable.litert_export",
    "export_onnx": "kbert.serving.portable.onnx_export",
    "export_together": "kbert.serving.export.multi_task_export",
    "load": "kbert.serving.loading.exported",
    "pipeline": "kbert.serving.loading.pipeline",
    "train_subwords": "kbert.text.subword_training",
}

__all__ = [
    "Albert",
    "Bahdanau",
    "Bert",
    "BertFusedTransformer",
    "ByteLevelBPE",
    "Captioner",
    "Classifier",
    "ConvS2S",
    "DistilBert",
    "Electra",
    "EntityRecognizer",
    "FeatureBasedEncoder",
    "FeatureExtractor",
    "ImageTransformer",
    "MaskedLanguageModel",
    "MultiLabelClassifier",
    "MultiTaskModel",
    "MultipleChoice",
    "QuestionAnswerer",
    "Regressor",
    "RnnEncoderDecoder",
    "Roberta",
    "ShowAttendTell",
    "SpanTagger",
    "Subword",
    "TextEmbedder",
    "Transformer",
    "Translator",
    "Vocabulary",
    "WordPiece",
    "__version__",
    "export",
    "export_litert",
    "export_onnx",
    "export_together",
    "load",
    "pipeline",
    "train_subwords",
]


if "tensorflow" not in sys.modules:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
when_keras_loads()


def __getattr__(name: str) -> Any:
    """Loads a public name from its module, once."""
    if name not in _MODULE_OF:
        message = f"module 'kbert' has no attribute {name!r}"
        raise AttributeError(message, name=name, obj=sys.modules[__name__])
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Lists the public names, loaded or not."""
    return sorted(__all__)
