"""Classes of kbert under the names by which Keras saves them, before their modules are loaded.

Keras finds a class in a saved model by its registered name, and a class registers when its module
is imported. `import kbert` imports none. So each name stands for its class from the beginning: what
first makes a model or layer by that name loads the module.
"""

import importlib
import importlib.util
import sys
from typing import Any

# Module, without `kbert.` -> the classes that it registers.
NAMES = {
    "layers.adapter": "Adapter",
    "layers.adapter_encoder_block": "AdapterEncoderBlock",
    "layers.adapter_residual": "AdapterResidual",
    "layers.attention": "SelfAttention",
    "layers.bert_embeddings": "BertEmbeddings",
    "layers.bias": "Bias",
    "layers.cross_attention": "CrossAttention",
    "layers.decoder_block": "DecoderBlock",
    "layers.drop_net": "DropNet",
    "layers.dropout": "Dropout",
    "layers.encoder_block": "EncoderBlock",
    "layers.feed_forward": "FeedForward",
    "layers.fused_decoder_block": "FusedDecoderBlock",
    "layers.fused_encoder_block": "FusedEncoderBlock",
    "layers.fused_residual": "FusedResidual",
    "layers.layer_norm": "LayerNorm",
    "layers.linear": "Linear",
    "layers.masked_language_head": "MaskedLanguageHead",
    "layers.positions": "LearnedPositions SinusoidalPositions",
    "layers.residual": "Residual",
    "layers.token_embedding": "TokenEmbedding",
    "models.adapter_bert": "AdapterBert",
    "models.bert": "Bert",
    "models.bert_fused_transformer": "BertFusedTransformer",
    "models.new_weights": "NewWeights",
    "models.transformer": "Transformer",
    "optimization.adamw": "AdamW",
    "optimization.losses": "SoftmaxCrossEntropy",
    "optimization.pretraining_metrics": "NextSentenceMetrics PredictedTokenMetrics",
    "optimization.schedules": "InverseSquareRootDecay WarmupLinearDecay",
    "optimization.sequence_losses": "SpanCrossEntropy TokenAccuracy TokenCrossEntropy",
    "optimization.translation_losses": "LabelSmoothedCrossEntropy NextTokenAccuracy Perplexity",
    "pipelines.classification": "Classifier",
    "pipelines.masked_language_model": "MaskedLanguageModel",
    "pipelines.multiple_choice": "MultipleChoice",
    "pipelines.ner": "EntityRecognizer",
    "pipelines.question_answering": "QuestionAnswerer",
    "pipelines.regression": "Regressor",
    "pipelines.span_tagging": "SpanTagger",
    "pipelines.translation": "Translator",
    "tasks.classification": "SequenceClassification SequenceHead",
    "tasks.multiple_choice": "ChoiceSelection",
    "tasks.pretraining": "Pretraining",
    "tasks.question_answering": "SpanExtraction",
    "tasks.regression": "SequenceRegression",
    "tasks.token_classification": "TokenClassification",
    "tasks.translation": "Translation",
    "text.subword": "Subword",
    "text.wordpiece": "WordPiece",
}


def when_keras_loads() -> None:
    """Registers the names with Keras: now where it is loaded, or else as soon as it is."""
    if "keras" in sys.modules:
        register_names()
    else:
        sys.meta_path.insert(0, _KerasFinder())


def register_names() -> None:
    """Registers all names whose classes are not loaded."""
    known = importlib.import_module("keras.saving").get_custom_objects()
    for module, names in NAMES.items():
        for name in names.split():
            known.setdefault(f"kbert>{name}", _stand_in(f"kbert.{module}", name))


def _stand_in(module: str, name: str) -> type:
    """A class that gives what the class `name` of a module makes of a configuration."""

    def from_config(config: dict[str, Any]) -> Any:
        return getattr(importlib.import_module(module), name).from_config(config)

    return type(name, (), {"__module__": module, "from_config": staticmethod(from_config)})


class _KerasFinder:
    """Finds Keras where the others do, once, and registers the names when it has been loaded."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "keras":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                load(module)
                register_names()

            setattr(spec.loader, "exec_module", exec_module)
        return spec
