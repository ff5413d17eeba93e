import pytest

from kbert.tasks.classification.task import TASK
from kbert.training.recipes.finetuned_model import build_model
from kbert.training.recipes.finetuning import read_run_data, report_lines, start_report


@pytest.mark.filterwarnings("ignore:.*occur only once")
def test_the_report_by_hand(tiny, tmp_path):
    file = tmp_path / "t.tsv"
    file.write_text("text\tlabel\ngood\tup\nbad\tdown\nthe film was bad and dull\tdown\n")
    config = tiny.config(
        tmp_path / "o",
        train=str(file),
        validation=None,
        batch_size=2,
        epochs=5,
        max_sequence_length=6,
        class_weights={"up": 2, "down": 1},
    )
    data = read_run_data(config)
    model = build_model(config, data)
    inputs = {"train": TASK.prepare(model, data.train).input}
    report = start_report(config, data, model, inputs, inputs["train"].steps(config))
    train = report["examples"]["train"]
    # [CLS] and [SEP] beside 1, 1 and 6 words, the last cut to 6 tokens.
    assert (train["count"], train["tokens"], train["longest"]) == (3, 12, 6)
    assert train["truncated_share"] == 1 / 3
    assert train["labels"] == {"down": 2, "up": 1}
    assert (report["steps"], report["warmup_steps"]) == (10, 1)
    # Batches (6, 3) and (3): 15 cells.
    assert abs(report["padding_share"] - 3 / 15) < 1e-12
    assert report["parameters"] == sum(int(w.numpy().size) for w in model.trainable_variables)
    assert report["input_tokens_per_second"] > 0
    text = report_lines(report)
    assert "train: 3 examples, 12 tokens, the longest has 6; 33.3% were cut" in text
    assert "labels: down 2, up 1" in text and "class weights: down 1, up 2" in text
    assert "steps: 10 (1 of warm-up); padding: 20.0% of the batches" in text
