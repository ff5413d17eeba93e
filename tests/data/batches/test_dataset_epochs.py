from kbert.data.batches.dataset import Epochs


def test_passes_are_counted_unless_told():
    epochs = Epochs(2)
    assert [epochs.begin(), epochs.begin()] == [2, 3]
    epochs.told = 7
    assert [epochs.begin(), epochs.begin()] == [7, 7]
    epochs.told = None
    assert epochs.begin() == 4
