"""kbert: BERT with Keras 3, from raw text to answers, in training and in serving.

The public names are loaded when they are first used (PEP 562), so `import kbert` alone imports
neither TensorFlow nor Keras.
"""

import importlib
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    """Loads a public name from its module, once."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'kbert' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Lists the public names, loaded or not."""
    return sorted({*globals(), *_MODULE_OF})
