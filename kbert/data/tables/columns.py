"""Examples as columns of one length: the base of all forms of examples."""

import dataclasses
from collections.abc import Iterable
from typing import Any, ClassVar, Self


@dataclasses.dataclass(frozen=True)
class Columns:
    """The base of frozen dataclasses whose fields are columns, some of which may be None.

    Attributes:
        columns: the names of the fields that are columns; the first is never None.
    """

    columns: ClassVar[tuple[str, ...]]

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(getattr(self, self.columns[0]))

    def __post_init__(self) -> None:
        """Checks that all columns have one length."""
        first, *others = self.columns
        for name in others:
            column = getattr(self, name)
            if column is not None and len(column) != len(self):
                raise ValueError(
                    f"`{name}` must be as long as `{first}`, {len(self)}. Received: "
                    f"{len(column)} items"
                )

    def select(self, indices: Iterable[int]) -> Self:
        """Returns some of the rows.

        Args:
            indices: 0-based indices in the order of the result.

        Raises:
            IndexError: there is no such row.
        """
        chosen = [int(index) for index in indices]
        columns = {name: getattr(self, name) for name in self.columns}
        picked: dict[str, Any] = {
            name: None if column is None else [column[i] for i in chosen]
            for name, column in columns.items()
        }
        return dataclasses.replace(self, **picked)

    def head(self, count: int) -> Self:
        """Returns the first `count` rows.

        Args:
            count: number of rows to keep, at least 1.

        Raises:
            ValueError: `count` is below 1.
        """
        if count < 1:
            raise ValueError(f"`count` must be at least 1. Received: count={count}")
        return self.select(range(min(count, len(self))))
