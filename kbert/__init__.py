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
    from kbert.models.bert import Bert
    from kbert.models.bert_fused_transformer import BertFusedTransformer
    from kbert.models.transformer import Transformer
    from kbert.pipelines.classification import Classifier
    from kbert.pipelines.masked_language_model import MaskedLanguageModel
    from kbert.pipelines.multiple_choice import MultipleChoice
    from kbert.pipelines.ner import EntityRecognizer
    from kbert.pipelines.question_answering import QuestionAnswerer
    from kbert.pipelines.regression import Regressor
    from kbert.pipelines.span_tagging import SpanTagger
    from kbert.pipelines.translation import Translator
    from kbert.serving.load_any import load
    from kbert.serving.saved_model import export
    from kbert.serving.together import export_together
    from kbert.text.subword import Subword
    from kbert.text.subword_training import train_subwords
    from kbert.text.vocabulary import Vocabulary
    from kbert.text.wordpiece import WordPiece

__version__ = "0.1.0"

# Public name -> the module that holds it.
_MODULE_OF = {
    "Bert": "kbert.models.bert",
    "BertFusedTransformer": "kbert.models.bert_fused_transformer",
    "Classifier": "kbert.pipelines.classification",
    "EntityRecognizer": "kbert.pipelines.ner",
    "MaskedLanguageModel": "kbert.pipelines.masked_language_model",
    "MultipleChoice": "kbert.pipelines.multiple_choice",
    "QuestionAnswerer": "kbert.pipelines.question_answering",
    "Regressor": "kbert.pipelines.regression",
    "SpanTagger": "kbert.pipelines.span_tagging",
    "Subword": "kbert.text.subword",
    "Transformer": "kbert.models.transformer",
    "Translator": "kbert.pipelines.translation",
    "Vocabulary": "kbert.text.vocabulary",
    "WordPiece": "kbert.text.wordpiece",
    "export": "kbert.serving.saved_model",
    "export_together": "kbert.serving.together",
    "load": "kbert.serving.load_any",
    "train_subwords": "kbert.text.subword_training",
}

__all__ = [
    "Bert",
    "BertFusedTransformer",
    "Classifier",
    "EntityRecognizer",
    "MaskedLanguageModel",
    "MultipleChoice",
    "QuestionAnswerer",
    "Regressor",
    "SpanTagger",
    "Subword",
    "Transformer",
    "Translator",
    "Vocabulary",
    "WordPiece",
    "__version__",
    "export",
    "export_together",
    "load",
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
