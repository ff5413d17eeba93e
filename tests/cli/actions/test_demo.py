import io
import subprocess

import pytest
from rich.console import Console

from kbert.cli.actions import demo as demo_steps
from kbert.cli.actions.demo import run_demo
from kbert.data.classification.text_pairs import read_text_examples
from kbert.data.samples import sample_path


def test_the_samples_do_not_overlap():
    names = ("train", "validation", "test")
    parts = [read_text_examples(sample_path(f"support/{name}.tsv")) for name in names]
    texts = [set(part.text_a) for part in parts]
    assert not (texts[0] & texts[1] or texts[0] & texts[2] or texts[1] & texts[2])
    assert len({frozenset(part.labels) for part in parts}) == 1


@pytest.fixture
def readers(monkeypatch):
    """What these two show needs the real encoder: see test_demo_parts_readers."""
    monkeypatch.setattr(demo_steps, "ask_questions", lambda console: {"f1": 96.0})
    monkeypatch.setattr(demo_steps, "find_names", lambda console: {"f1": 0.8})


def steps_are_told(tmp_path):
    """Runs the demo; what it returned."""
    file = io.StringIO()
    found = run_demo(tmp_path, Console(file=file, width=100))
    text = file.getvalue()
    steps = ("1. Look", "2. Fine-tune", "3. Measure", "4. Export", "5. Ask")
    for words in (*steps, "6. Questions", "7. Names", "8. Translate", "9. Caption", "Done in"):
        assert words in text
    assert found["questions"] == {"f1": 96.0} and found["names"] == {"f1": 0.8}
    assert len(found["answers"]) == len(demo_steps.QUESTIONS)
    assert found["export"] == tmp_path / "exports" / "support" / "1"
    assert (found["run"] / "metrics.json").is_file()
    return found


def test_all_steps_in_their_order(readers, finished_run, tmp_path, monkeypatch):
    """The steps alone, with a run that is there: what they do is tested with what they call."""
    configs, asked = [], []
    monkeypatch.setattr(demo_steps, "train", lambda config: configs.append(config) or finished_run)
    made = tmp_path / "exports" / "support" / "1"
    monkeypatch.setattr(demo_steps, "export", lambda model, base, name: base / name / "1")

    def ask(exported, questions):
        asked.append(exported)
        return [{"label": "up", "score": 0.75}] * len(questions)

    monkeypatch.setattr(demo_steps, "ask_in_new_process", ask)
    translation = {"run": tmp_path / "translator"}
    monkeypatch.setattr(demo_steps, "demo_translation", lambda output, console: translation)
    captioning = {"run": tmp_path / "captioner"}
    monkeypatch.setattr(demo_steps, "demo_captioning", lambda output, console: captioning)
    found = steps_are_told(tmp_path)
    assert found["captioning"] is captioning
    assert found["translation"] is translation and asked == [made]
    assert [config.output for config in configs] == [str(tmp_path / "run")]
    assert set(found["test"]["per_class"]) == {"down", "up"}


def test_a_process_is_asked_and_its_failure_told(tmp_path, monkeypatch):
    told = []

    def run(command, **options):
        told.append((command[1:], options["input"]))
        failed = "lost" in command[-1]
        return subprocess.CompletedProcess(command, failed, '{"label": "x"}\n', "no such file\n")

    monkeypatch.setattr(subprocess, "run", run)
    assert demo_steps.ask_in_new_process(tmp_path, ("a", "b")) == [{"label": "x"}]
    assert told == [(["-m", "kbert.cli.main", "predict", str(tmp_path)], "a\nb\n")]
    with pytest.raises(RuntimeError, match="predict .*lost` failed: no such file"):
        demo_steps.ask_in_new_process(tmp_path / "lost", ("a",))


@pytest.mark.slow
def test_all_steps_with_a_tiny_encoder(readers, tiny, tmp_path, monkeypatch):
    """The steps, not the quality: random weights and a vocabulary of 24 words."""
    monkeypatch.setattr(demo_steps, "ENCODER", str(tiny.encoder))
    monkeypatch.setitem(demo_steps.SETTINGS, "epochs", 1)
    monkeypatch.setitem(demo_steps.SETTINGS, "max_sequence_length", 24)
    monkeypatch.setitem(demo_steps.TRANSLATOR_SETTINGS, "epochs", 1)
    monkeypatch.setitem(demo_steps.TRANSLATOR_SETTINGS, "hidden_dim", 16)
    steps_are_told(tmp_path)
    assert (tmp_path / "translator" / "model").is_dir()


@pytest.mark.slow
def test_the_demo_learns(minilm_directory, tmp_path):
    found = run_demo(tmp_path, Console(file=io.StringIO()))
    # Six classes of equal size: chance is 1/6; 90 messages, so a standard error of 4 points.
    assert found["test"]["accuracy"] > 0.7
    assert [answer["label"] for answer in found["answers"]] == [
        "delivery",
        "billing",
        "returns",
        "account",
        "product_question",
        "praise",
    ]
    # Of 75 sentences it says about 65 word for word; one that learns nothing has a BLEU of 0.
    assert found["translation"]["test"]["bleu"] > 70
