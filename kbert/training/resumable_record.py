"""A record of epochs that a later process goes on with."""

import json
import shutil
from pathlib import Path
from typing import Any

from kbert.storage.atomic_directory import write_atomically
from kbert.training.epoch_record import EpochRecord


class ResumableRecord(EpochRecord):
    """An `EpochRecord` with a journal on disk.

    It must come before the `StateSaver` among the callbacks: an epoch whose end is in a state is
    then in the journal too. What the journal tells beyond the state is done again.

    Args:
        journal: The file of the journal.
        *args: Those of `EpochRecord`.
    """

    def __init__(self, journal: Path, *args: Any) -> None:
        super().__init__(*args)
        self._journal = journal

    def restore(self, done: int) -> None:
        """Takes up what an earlier process wrote down.

        Args:
            done: Epochs that are done in the state that the training goes on from.
        """
        found: dict[str, Any] = {"epochs": [], "best_epoch": 0, "best_value": None}
        if self._journal.is_file():
            found = json.loads(self._journal.read_text(encoding="utf-8"))
        self.epochs = found["epochs"][:done]
        self.best_epoch, self.best_value = found["best_epoch"], found["best_value"]
        if self._folder is None:
            return
        # Weights that the journal does not know are of an epoch that will be done again; those of
        # the best before it are gone then.
        for folder in self._folder.glob("epoch-*") if self._folder.is_dir() else ():
            if folder != self.kept:
                shutil.rmtree(folder)
        if not self.kept.is_dir():
            self.best_epoch, self.best_value = 0, None

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """As there, and writes the journal.

        Raises:
            FloatingPointError: The loss is no finite number.
        """
        super().on_epoch_end(epoch, logs)
        told = {
            "epochs": self.epochs,
            "best_epoch": self.best_epoch,
            "best_value": self.best_value,
        }
        write_atomically(self._journal, json.dumps(told))
