from dataclasses import dataclass

import pytest

from kbert.options import kinds
from kbert.options.configuration import Configuration
from kbert.options.kinds import option, whole


@dataclass(frozen=True)
class Meal(Configuration):
    """A configuration of two values."""

    plates: int = option(2, whole(1), "Table", "Plates.")
    guests: int = option(2, whole(0), "Table", "Guests.")

    def check_together(self) -> None:
        if self.guests > self.plates:
            raise ValueError(f"`guests` must be at most plates={self.plates}")


def test_values_are_checked_alone_and_then_together():
    with pytest.raises(ValueError, match="`plates` must be a whole number, at least 1. Received"):
        Meal(plates=0, guests=5)
    with pytest.raises(ValueError, match="`guests` must be at most plates=2"):
        Meal(guests=3)


def test_labels_that_yaml_reads_as_other_than_text_are_text():
    @dataclass(frozen=True)
    class Guests(Configuration):
        weights: dict = option("none", kinds.weights(), "Table", "Weights.")

    assert Guests({0: 1, True: 2, "c": 3}).weights == {"0": 1, "true": 2, "c": 3}
    with pytest.raises(ValueError, match="`weights` must be none, balanced, or {label: weight}"):
        Guests({0.5: 1})


def test_a_changed_one_is_of_the_same_class_and_checked():
    assert Meal().with_values(plates=3) == Meal(3, 2)
    with pytest.raises(ValueError, match="`guests` must be at most"):
        Meal().with_values(plates=1)


def test_unknown_keys_name_the_nearest(tmp_path):
    with pytest.raises(ValueError, match=r"be an option. Received: 'gusts'. Did you mean `guests`"):
        Meal.from_dict({"gusts": 1})
    file = tmp_path / "meal.yaml"
    file.write_text("plate: 3\n")
    with pytest.raises(ValueError, match="meal.yaml: the key .*Did you mean `plates`"):
        Meal.from_yaml(file)
    file.write_text("plates: 3\n")
    assert Meal.from_yaml(file, guests=1).to_dict() == {"plates": 3, "guests": 1}


def test_options_stand_by_panel_and_own_ones_first():
    @dataclass(frozen=True)
    class Base(Configuration):
        seed: int = option(1, whole(0), "Run", "a")
        rate: int = option(1, whole(0), "Training", "b")

    @dataclass(frozen=True)
    class Own(Base):
        train: int = option(1, whole(0), "Data", "c")
        epochs: int = option(1, whole(0), "Training", "d")

    names = ["train", "epochs", "rate", "seed"]
    assert [field.name for field in Own.options()] == names == list(Own().to_dict())
