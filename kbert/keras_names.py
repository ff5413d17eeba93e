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
    "decoding.shortlist": "Shortlist",
    "layers.attention": "CrossAttention SelfAttention",
    "layers.convolution.gated_convolution": "ConvolutionDecoderBlock ConvolutionEncoderBlock "
    "GatedConvolution",
    "layers.convolution.weight_norm": "WeightNormLinear",
    "layers.recurrent.attention_decoder": "AttentionDecoder",
    "layers.recurrent.bidirectional": "Bidirectional",
    "layers.recurrent.maxout": "Maxout",
    "layers.recurrent.recurrent": "OrthogonalBlocks Recurrent",
    "layers.vocabulary_output": "VocabularyOutput",
    "layers.adapters.block_adapters": "Bottleneck HoulsbyAdapter PfeifferAdapter",
    "layers.adapters.fusion": "AdapterFusion NearIdentity TowardsIdentity",
    "layers.adapters.low_rank": "LoraAdapter LowRank",
    "layers.fused_blocks": "DropNet FusedDecoderBlock FusedEncoderBlock FusedResidual",
    "layers.masked_language_head": "MaskedLanguageHead",
    "layers.decoder_block": "DecoderBlock",
    "layers.encoder_block": "EncoderBlock",
    "layers.embeddings": "BertEmbeddings LearnedPositions SinusoidalPositions TokenEmbedding",
    "layers.linear": "Bias FeedForward Linear",
    "layers.pooling": "TokenPooling",
    "layers.residual": "Dropout LayerNorm Residual",
    "models.adapters.adapter_set": "AdapterSet AdapterStack",
    "models.albert": "Albert",
    "models.bert": "Bert",
    "models.captioning.feature_extractor": "FeatureExtractor",
    "models.captioning.image_transformer": "ImageTransformer",
    "models.captioning.show_attend_tell": "ShowAttendTell",
    "models.encoder_decoders.bahdanau": "Bahdanau",
    "models.encoder_decoders.bert_fused_transformer": "BertFusedTransformer",
    "models.encoder_decoders.convs2s": "ConvS2S",
    "models.encoder_decoders.rnn": "RnnEncoderDecoder",
    "models.encoder_decoders.sequence_model": "SequenceModel",
    "models.encoder_decoders.transformer": "Transformer",
    "models.distilbert": "DistilBert",
    "models.electra": "Electra",
    "models.feature_based": "FeatureBasedEncoder",
    "models.roberta": "Roberta",
    "models.weights": "NewWeights",
    "optimization.adamw": "AdamW",
    "optimization.embedding_losses": "ByTargets CosineRegression MultipleNegatives TripletMargin",
    "optimization.label_losses": "MicroF1 SigmoidCrossEntropy",
    "optimization.losses": "SoftmaxCrossEntropy",
    "optimization.next_token_losses": "LabelSmoothedCrossEntropy NextSentenceMetrics "
    "NextTokenAccuracy Perplexity PredictedTokenMetrics",
    "optimization.schedules": "InverseSquareRootDecay WarmupLinearDecay",
    "optimization.sequence_losses": "SpanCrossEntropy TokenAccuracy TokenCrossEntropy",
    "tasks.captioning.head": "Captioning",
    "tasks.captioning.model": "Captioner",
    "tasks.classification.head": "SequenceClassification SequenceHead",
    "tasks.classification.model": "Classifier",
    "tasks.embedding.head": "SequenceEmbedding",
    "tasks.embedding.model": "TextEmbedder",
    "tasks.multi_label.head": "MultiLabelClassification",
    "tasks.multi_label.model": "MultiLabelClassifier",
    "tasks.multi_task.model": "MultiTaskModel",
    "tasks.multiple_choice.head": "ChoiceSelection",
    "tasks.multiple_choice.model": "MultipleChoice",
    "tasks.ner.head": "TokenClassification",
    "tasks.ner.model": "EntityRecognizer",
    "tasks.pretraining.head": "Pretraining",
    "tasks.pretraining.model": "MaskedLanguageModel",
    "tasks.question_answering.head": "SpanExtraction",
    "tasks.question_answering.model": "QuestionAnswerer",
    "tasks.regression.head": "SequenceRegression",
    "tasks.regression.model": "Regressor",
    "tasks.span_tagging.model": "SpanTagger",
    "tasks.translation.head": "Translation",
    "tasks.translation.model": "Translator",
    "text.byte_level_bpe.byte_level_bpe": "ByteLevelBPE",
    "text.subword": "Subword",
    "text.wordpiece.wordpiece": "WordPiece",
}


# Packages that Keras imports for parts of its own which need not be there: `load_keras_without`.
_HIDDEN: set[str] = set()


def load_keras_without(*packages: str) -> None:
    """Keeps Keras, which is not loaded yet, from importing packages; others import them as always.

    Keras imports matplotlib and scikit-learn where they are installed, for galleries of images and
    wrappers of models, and does without where they are not.
    """
    _HIDDEN.update(name for name in packages if name not in sys.modules)


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
    """Finds Keras where the others do, and registers the names when it is loaded."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "keras":
            return None
        # TensorFlow looks for Keras without loading it: then it must be found here once more.
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                sys.meta_path.remove(self)
                hidden: dict[str, Any] = dict.fromkeys(_HIDDEN)
                sys.modules.update(hidden)  # None: not to be imported
                try:
                    load(module)
                finally:
                    for name in hidden:
                        sys.modules.pop(name, None)
                register_names()

            setattr(spec.loader, "exec_module", exec_module)
        return spec
