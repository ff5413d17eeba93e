"""Small sample data, shipped with the package: see README.md in this folder."""

from importlib import resources
from pathlib import Path


def sample_path(name: str) -> Path:
    """Returns the path of a sample file, relative to the working directory if it is below that.

    `name` is its path below this folder, such as "support/train.tsv"; a FileNotFoundError lists the
    existing ones.
    """
    root = Path(str(resources.files(__name__)))
    if root.is_relative_to(Path.cwd()):
        root = root.relative_to(Path.cwd())
    path = root / name
    if not path.is_file():
        known = sorted(file.relative_to(root).as_posix() for file in root.glob("[!_]*/*.*"))
        raise FileNotFoundError(
            f"`name` must be one of {', '.join(known)}. Received: name={name!r}"
        )
    return path
