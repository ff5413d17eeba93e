import gc
from types import SimpleNamespace

import pytest

from kbert.training.recipes.translation import TranslationTraining
from kbert.training.run import train
from kbert.training.runs.run_directory import load_run, run_directory, write_config, write_json
from kbert.training.several_runs import summarize, summary_line, train_seeds
from tests.pinned import check_run
from tests.training.eager_steps import eager_steps


def metrics(accuracy, **others):
    final = {"validation": {"accuracy": accuracy, "per_class": {}}, **others}
    about = {"task": "classification", "glue": None, "monitor": "accuracy"}
    return {**about, "kept_epoch": 1, "epochs": [], "seconds": 2.0, "final": final}


def test_mean_and_deviation_by_hand():
    # Mean (0.5 + 0.7 + 0.9) / 3 = 0.7; sample deviation sqrt((0.04 + 0 + 0.04) / 2) = 0.2.
    found = summarize({4: metrics(0.5), 5: metrics(0.9), 6: metrics(0.7)})
    assert found["mean"] == {"validation": {"accuracy": pytest.approx(0.7)}}
    assert found["standard_deviation"] == {"validation": {"accuracy": pytest.approx(0.2)}}
    assert found["best_seed"] == 5 and found["final"]["validation"]["accuracy"] == 0.9
    assert found["seeds"]["6"] == {"validation": {"accuracy": 0.7}} and found["seconds"] == 6.0
    lines = summary_line(found).splitlines()
    assert lines == ["3 seeds, best: 5", "  validation accuracy: 0.7000 +- 0.2000"]


def test_one_seed_has_no_deviation():
    found = summarize({1: metrics(0.5)})
    assert found["standard_deviation"] == {"validation": {"accuracy": None}}
    assert summary_line(found).endswith("accuracy: 0.5000")


def test_the_first_of_equal_seeds_is_best_and_losses_are_better_low():
    assert summarize({1: metrics(0.5), 2: metrics(0.5)})["best_seed"] == 1
    # Equal accuracies: the cross entropy decides.
    tied = {seed: metrics(0.5) for seed in (1, 2, 3)}
    for seed, loss in ((1, 0.8), (2, 0.6), (3, 0.7)):
        tied[seed]["final"]["validation"]["cross_entropy"] = loss
    assert summarize(tied)["best_seed"] == 2
    values = {seed: {**metrics(0.5), "monitor": "mse"} for seed in (1, 2)}
    for seed, mse in ((1, 0.4), (2, 0.3)):
        values[seed]["final"] = {"validation": {"mse": mse}}
    assert summarize(values)["best_seed"] == 2


@pytest.fixture(scope="module")
def two_seeds(tiny, tmp_path_factory):
    output = tmp_path_factory.mktemp("seeds") / "run"
    with eager_steps():
        return train(tiny.config(output, seeds=2, test=tiny.texts["test"]))


def test_a_run_with_seeds(two_seeds):
    check_run("fine-tuning with seeds", two_seeds, ("metrics.json", "log.txt"))
    run = load_run(two_seeds)
    each = [load_run(two_seeds / f"seed-{seed}") for seed in (1, 2)]
    for part in ("validation", "test"):
        a, b = (one.metrics["final"][part]["cross_entropy"] for one in each)
        assert run.metrics["mean"][part]["cross_entropy"] == pytest.approx((a + b) / 2)
        # Of two values, the sample's deviation is their distance over the root of 2.
        deviation = run.metrics["standard_deviation"][part]["cross_entropy"]
        assert deviation == pytest.approx(abs(a - b) / 2**0.5)
        assert a != b
    best = two_seeds / f"seed-{run.metrics['best_seed']}"
    for name in ("model.safetensors", "vocabulary.txt"):
        assert (two_seeds / "model" / name).read_bytes() == (best / "model" / name).read_bytes()
    assert [one.config.seed for one in each] == [1, 2] and run.config.seeds == 2


def test_a_seed_gives_the_same_run_again(two_seeds, finished_run):
    one = load_run(finished_run).metrics["epochs"][0]["training"]["loss"]
    again = load_run(two_seeds / "seed-1").metrics["epochs"][0]["training"]["loss"]
    other = load_run(two_seeds / "seed-2").metrics["epochs"][0]["training"]["loss"]
    assert again == pytest.approx(one, rel=1e-4) and other != pytest.approx(one, rel=1e-4)


PAIRS = SimpleNamespace(hashes={"data_sha256": "aa"})


def test_seeds_that_were_finished_before_a_stop_stay(tiny_pairs, tmp_path, monkeypatch):
    """What trains with one seed is written by hand here."""
    monkeypatch.setattr(gc, "collect", lambda: 0)  # of all that other tests left, it takes long
    done = []

    def once(recipe):
        config, data = recipe.config, recipe.data
        assert data is PAIRS and config.seeds == 1
        done.append(config.seed)
        if done == [1, 2]:
            raise RuntimeError("power")
        with run_directory(config.output, resume=config.resume) as folder:
            write_config(config, folder)
            write_json({}, folder / "report.json")
            write_json(metrics(0.5 + config.seed / 10), folder / "metrics.json")
            (folder / "model").mkdir()
        return config.output

    monkeypatch.setattr("kbert.training.several_runs.run_recipe", once)
    config = tiny_pairs.config(tmp_path / "run", seeds=3)
    with pytest.raises(RuntimeError, match="power"):
        train_seeds(config, PAIRS, recipe=TranslationTraining)
    with pytest.raises(FileExistsError, match="Set resume to go on with it"):
        train_seeds(config.with_values(resume=False), PAIRS, recipe=TranslationTraining)
    with pytest.raises(ValueError, match=r"Received: epochs=7 \(it had 2\)"):
        train_seeds(config.with_values(epochs=7), PAIRS, recipe=TranslationTraining)
    run = load_run(train_seeds(config, PAIRS, recipe=TranslationTraining))
    assert done == [1, 2, 2, 3] and run.metrics["best_seed"] == 3
    assert run.metrics["mean"]["validation"]["accuracy"] == pytest.approx(0.7)  # 0.6, 0.7, 0.8
