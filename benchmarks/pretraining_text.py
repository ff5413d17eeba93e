"""Novels and articles as text to pretrain on: a blank line between documents.

    python benchmarks/pretraining_text.py TEXT_DIRECTORY GLUE_DIRECTORY OUTPUT_DIRECTORY

corpus.txt holds the novels but one and WikiText-2's validation articles; held-out.txt WikiText-2's
test articles and the novel left out, in turn. A document is an article, or some 60 lines of a
novel: the two texts of a pair that do not follow each other come from different ones. Beside them
the questions of QNLI, qnli-train.tsv and qnli-dev.tsv, of which only a part is at hand.
"""

import argparse
import csv
import gzip
import json
import re
from itertools import chain, zip_longest
from pathlib import Path

from kbert.storage.files import atomic_directory

NOVELS, HELD_OUT_NOVEL, LINES = "english_novels_19c.txt.gz", "Trollope_Warden", 60
# WikiText writes "3 @.@ 5" for 3.5, and <unk> for rare words.
_JOINED, _UNKNOWN = re.compile(r" @(.)@ "), re.compile(r" ?<unk>")


def articles(path: Path) -> list[str]:
    """The articles of a file of WikiText, headings and all."""
    text = _UNKNOWN.sub("", _JOINED.sub(r"\1", path.read_text(encoding="utf-8")))
    parts = re.split(r"^ = (?!=).*\n", text, flags=re.MULTILINE)
    lines = ((line.strip() for line in part.splitlines()) for part in parts)
    return [whole for part in lines if (whole := "\n".join(line for line in part if line))]


def novels(path: Path) -> dict[str, list[str]]:
    """Each novel by its name, in documents of some lines."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        parts = re.split(r"^==== (.*)\.txt ====$", file.read(), flags=re.MULTILINE)
    found = {}
    for name, text in zip(parts[1::2], parts[2::2]):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        found[name] = ["\n".join(lines[i : i + LINES]) for i in range(0, len(lines), LINES)]
    return found


def write_pairs(source: Path, output: Path) -> None:
    """Writes pairs of texts with their label, a row each."""
    pairs = json.loads(gzip.decompress(source.read_bytes()))
    with output.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, delimiter="\t", lineterminator="\n")
        rows.writerow(["text_a", "text_b", "label"])
        rows.writerows([pair["text_a"], pair["text_b"], pair["label"]] for pair in pairs.values())


def write(text: Path, glue: Path, output: Path) -> None:
    """Writes all files into a new folder, which is there whole or not at all."""
    books = novels(text / NOVELS)
    (left_out,) = [books.pop(name) for name in list(books) if name.startswith(HELD_OUT_NOVEL)]
    learned = [*chain(*books.values()), *articles(text / "wikitext-2.valid.txt")]
    turns = zip_longest(articles(text / "wikitext-2.test.txt"), left_out)
    held_out = [document for turn in turns for document in turn if document]
    with atomic_directory(output) as folder:
        for name, documents in (("corpus", learned), ("held-out", held_out)):
            (folder / f"{name}.txt").write_text("\n\n".join(documents) + "\n", encoding="utf-8")
            print(f"{name}: {len(documents)} documents, {sum(map(len, documents)):,} characters")
        for split in ("train", "dev"):
            (source,) = (glue / "QNLI-subset").glob(f"*{split}*.json.gz")
            write_pairs(source, folder / f"qnli-{split}.tsv")


def main() -> None:
    """Writes the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("text", type=Path, help=f"folder with {NOVELS} and wikitext-2.*.txt")
    parser.add_argument("glue", type=Path, help="folder with QNLI-subset")
    parser.add_argument("output", type=Path, help="new folder")
    arguments = parser.parse_args()
    write(arguments.text, arguments.glue, arguments.output)


if __name__ == "__main__":
    main()
