import pytest

from kbert.options.kinds import config_text, parse_yaml, read_config_file


def test_plain_values_are_those_of_yaml_1_2():
    # YAML 1.2.2, section 10.3.2; PyYAML alone would give "5e-5" as text, and no and on as booleans.
    text = "a: 5e-5\nb: no\nc: on\nd: 3\ne: true\nf:\ng: '5'\nh: -1.5\ni: 1_000\nj: [yes, 0o7]"
    assert parse_yaml(text, "x") == {
        "a": 5e-5,
        "b": "no",
        "c": "on",
        "d": 3,
        "e": True,
        "f": None,
        "g": "5",
        "h": -1.5,
        "i": "1_000",
        "j": ["yes", "0o7"],
    }


def test_what_is_written_is_read_back(tmp_path):
    values = {"a": 5e-5, "b": "no", "c": None, "d": ["true", "1"], "e": {"ü": 1.0}, "f": "x: #y"}
    file = tmp_path / "c.yaml"
    file.write_text(config_text(values), encoding="utf-8")
    assert read_config_file(file) == values


@pytest.mark.parametrize(
    "text",
    ["08", "010", "1e3", "5e-5", "1.5e3", "-.5", ".inf", "~", "", "True", "no", "1_000", "0x1"],
)
def test_texts_that_look_like_something_else_stay_texts(tmp_path, text):
    file = tmp_path / "c.yaml"
    file.write_text(config_text({"a": text, "b": [text], "c": {text: 1}}), encoding="utf-8")
    assert read_config_file(file) == {"a": text, "b": [text], "c": {text: 1}}


def test_a_number_with_a_zero_before_it_is_decimal():
    assert parse_yaml("a: 010\nb: -08", "x") == {"a": 10, "b": -8}


def test_an_empty_file_has_no_keys(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("# nothing yet\n")
    assert read_config_file(file) == {}


@pytest.mark.parametrize(
    "content, message",
    [
        (b"a: 1\na: 2", "c.yaml must be YAML. Received: line 2: the key `a` is there twice"),
        (b"a: [1", "c.yaml must be YAML. Received: while parsing a flow sequence"),
        (b"- a\n- b", "must hold one `key: value` a line. Received: list"),
        (b"1: 2", "must hold one `key: value` a line. Received: dict"),
        (b"a: \xff", "c.yaml must be UTF-8"),
        (b"a: !!python/object:os.system x", "could not determine a constructor"),
    ],
)
def test_what_is_no_configuration_is_refused(tmp_path, content, message):
    file = tmp_path / "c.yaml"
    file.write_bytes(content)
    with pytest.raises(ValueError) as raised:
        read_config_file(file)
    assert message in str(raised.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="none.yaml"):
        read_config_file(tmp_path / "none.yaml")
