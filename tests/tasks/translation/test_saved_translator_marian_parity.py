"""The same ids, logits and translations as transformers, from folders that transformers wrote."""

import json

import numpy as np
import pytest
import tensorflow as tf

from kbert.tasks.translation.model import Translator
from tests.checkpoints.synthetic_marian import POSITIONS, marian_config, write_tokenizer
from tests.transformers_process import run_with_transformers

# Of published models the first; the others are what the configuration also allows.
CASES = {
    "shared": {},
    "unscaled": {"scale_embedding": False, "activation_function": "gelu"},
    "untied": {
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": False,
        "activation_function": "relu",
    },
}
# Unknown characters, pieces that only the German side or only the English model has, nothing.
TEXTS = [
    "the old man reads a book",
    ">>deu<< two women near the ball",
    "a ☃ with the ball ß",
    "",
    "river",
]
PEER = '''
import json, sys
import numpy, torch, transformers
folder, cases, texts, longest = json.loads(sys.argv[1])


def made(config, rows):
    """A model that has begun to say its sources backwards: a random one never ends."""
    torch.manual_seed(0)
    model = transformers.MarianMTModel(transformers.MarianConfig(**config)).eval()
    model.final_logits_bias += torch.randn_like(model.final_logits_bias)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(60):
        for inputs in rows:
            ids = inputs["input_ids"]
            labels = torch.cat([ids[:, :-1].flip(1), ids[:, -1:]], dim=1)
            model(**inputs, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.final_logits_bias[0, -1] += 9.0  # the padding, which is not to be said
    model.generation_config.bad_words_ids = [[config["pad_token_id"]]]
    return model


def said_by(model, inputs):
    return model.generate(**inputs, num_beams=1, do_sample=False, max_new_tokens=longest)[0]


for name, config in cases.items():
    here = folder + "/" + name
    separate = "decoder_vocab_size" in config
    target = here + "/target_vocab.json" if separate else None
    tokenizer = transformers.MarianTokenizer(
        here + "/source.spm", here + "/target.spm", here + "/vocab.json",
        target_vocab_file=target, separate_vocabs=separate)
    rows = [tokenizer([text], return_tensors="pt") for text in texts]
    model = made(config, rows)
    model.save_pretrained(here)
    tokenizer.save_pretrained(here)
    found = {}
    for index, inputs in enumerate(rows):
        said = said_by(model, inputs)
        with torch.no_grad():
            logits = model(**inputs, decoder_input_ids=said[None, :-1]).logits
        found[f"ids_{index}"] = inputs["input_ids"][0].numpy()
        found[f"said_{index}"] = said.numpy()
        found[f"logits_{index}"] = logits[0].numpy()
    numpy.savez(here + "/found.npz", **found)
'''


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian")
    configs = {}
    for name, changes in CASES.items():
        separate = name == "untied"
        ids = write_tokenizer(folder / name, separate)
        config = marian_config(len(ids), **changes)
        del config["bad_words_ids"], config["num_beams"]  # of the search, not of the model
        if separate:
            config["decoder_vocab_size"] = len(ids)
            # More embeddings than pieces, as where a table was rounded up.
            config["vocab_size"] = len(ids) + 3
        configs[name] = config
    run_with_transformers(PEER, json.dumps([str(folder), configs, TEXTS, POSITIONS]))
    return folder


@pytest.mark.parity
@pytest.mark.parametrize("name", CASES)
def test_equal_to_transformers(folders, name):
    found = np.load(folders / name / "found.npz")
    size = json.loads((folders / name / "config.json").read_text())["vocab_size"]
    model = Translator.from_pretrained(folders / name, beam_size=1, length_ratio=POSITIONS)
    inputs, lengths, _ = model.source_inputs(tf.constant(TEXTS))
    said = model.search(inputs, lengths)
    ends = set()
    for index in range(len(TEXTS)):
        ids, wanted = found[f"ids_{index}"], found[f"said_{index}"]
        # A piece that the vocabulary lacks has an id of its own, and the unknown one's embedding.
        ours = inputs["source_token_ids"][index, : len(ids)].numpy()
        np.testing.assert_array_equal(np.where(ours < size, ours, 1), ids)
        assert int(lengths[index]) == len(ids)
        # Greedily the same pieces, and the end; transformers begins with the start.
        count = int(said.lengths[index, 0])
        np.testing.assert_array_equal(said.token_ids[index, 0, :count], wanted[1:])
        ends.add(count)
        logits = model.transformer(
            {
                "source_token_ids": inputs["source_token_ids"],
                "source_padding_mask": inputs["source_padding_mask"],
                "target_token_ids": np.tile(wanted[:-1].astype("int32"), (len(TEXTS), 1)),
            }
        )[index].numpy()
        expected = found[f"logits_{index}"]
        expected[:, -1] -= 100.0  # the padding, which the configuration forbids
        np.testing.assert_allclose(logits[:, : expected.shape[1]], expected, atol=1e-4)
    assert len(ends) > 2, "sentences of one length show little"
