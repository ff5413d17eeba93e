"""Photographs with captions, and those of training mirrored too: twice as many views to learn."""

import csv
from pathlib import Path

from PIL import Image, ImageOps

from kbert.data.captions.captioned_images import CaptionExamples, read_captions


def data_options(data: Path, sizes: tuple[int, ...], folder: Path | None) -> dict[str, str]:
    """Returns the options of a run on photographs, and on mirrored ones where there is a folder.

    Args:
        data: folder with captions.txt.gz and images/.
        sizes: images for training, validation and test.
        folder: where tables and mirrored images are written, once; other images are links there.
    """
    if folder is None:
        split = ",".join(map(str, sizes))
        given = {"train": str(data / "captions.txt.gz"), "images": str(data / "images")}
        return {**given, "split": split}
    tables = {part: folder / f"{part}.csv" for part in ("train", "validation", "test")}
    if not tables["test"].is_file():
        (folder / "images").mkdir(parents=True, exist_ok=True)
        parts = read_captions(data / "captions.txt.gz", data / "images").split(sizes)
        for (part, table), examples in zip(tables.items(), parts, strict=True):
            _write(table, examples, mirrored=part == "train")
    return {**{part: str(table) for part, table in tables.items()}, "images": f"{folder}/images"}


def _write(table: Path, examples: CaptionExamples, mirrored: bool) -> None:
    rows = [("image", "caption")]
    for path, captions in zip(map(Path, examples.paths), examples.captions or []):
        views = [table.parent / "images" / path.name]
        views[0].unlink(missing_ok=True)
        views[0].symlink_to(path.absolute())
        if mirrored:
            views.append(views[0].with_name(f"{path.stem}_flipped.png"))
            ImageOps.mirror(Image.open(path).convert("RGB")).save(views[1])
        rows += [(view.name, caption) for view in views for caption in captions]
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
