"""BERT's tokenizer in plain Python, written from the description in google-research/bert.

Source: the README ("Tokenization") and the published algorithm: clean the text, put spaces round
CJK ideographs, split at white space, lower-case and strip accents, split at punctuation, then match
the longest token from the left. Where the published code and Hugging Face `tokenizers` differ, this
follows the latter, as the goldens do: a letter is lower-cased alone (no final sigma), private-use
code points are dropped too, and the ideograph block 2B820 begins at 2B920.

It reads categories from `unicodedata`, so it agrees with the reference only on code points that are
older than the reference's tables: `is_settled` says which. Slow and simple; nothing of kbert in it.
"""

import unicodedata

Token = tuple[str, int, int]  # the piece, its first code point, the one after its last

_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
MAX_CHARACTERS = 100


def is_settled(character: str) -> bool:
    """Assigned since Unicode 3.2, with the same category and combining class ever since."""
    old = unicodedata.ucd_3_2_0
    return (
        old.category(character) not in ("Cn", "Cs")
        and old.category(character) == unicodedata.category(character)
        # Runs of these are sorted by NFD; the simple reference strips before it would matter.
        and not (unicodedata.combining(character) and unicodedata.category(character) != "Mn")
    )


def _is_punctuation(character: str) -> bool:
    ascii_symbol = "!" <= character <= "~" and not character.isalnum()
    return ascii_symbol or unicodedata.category(character).startswith("P")


def _is_ideograph(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in _IDEOGRAPHS)


def _cleaned(text: str) -> list[tuple[str, int]]:
    """Characters and where they came from, without controls; white space is a space."""
    cleaned = []
    for index, character in enumerate(text):
        category = unicodedata.category(character)
        if character in "\t\n\r":
            cleaned.append((" ", index))
        elif character in "\0\ufffd" or category in ("Cc", "Cf", "Co"):
            continue
        elif category in ("Zs", "Zl", "Zp"):
            cleaned.append((" ", index))
        elif _is_ideograph(character):
            cleaned += [(" ", index), (character, index), (" ", index)]
        else:
            cleaned.append((character, index))
    return cleaned


def _folded(characters: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Lower case, then without accents."""
    folded = []
    for character, index in characters:
        for part in unicodedata.normalize("NFD", character.lower()):
            if unicodedata.category(part) != "Mn":
                folded.append((part, index))
    return folded


def _words(characters: list[tuple[str, int]]) -> list[list[tuple[str, int]]]:
    words: list[list[tuple[str, int]]] = [[]]
    for character, index in characters:
        if character == " ":
            words.append([])
        elif _is_punctuation(character):
            words += [[(character, index)], []]
        else:
            words[-1].append((character, index))
    return [word for word in words if word]


def _pieces(word: str, vocabulary: set[str]) -> list[str] | None:
    """Greedy longest match first; None where the word cannot be spelled."""
    if len(word) > MAX_CHARACTERS:
        return None
    pieces = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        end = len(word)
        while end > start and prefix + word[start:end] not in vocabulary:
            end -= 1
        if end == start:
            return None
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


def tokenize(text: str, vocabulary: set[str], lowercase: bool) -> list[Token]:
    """The pieces of `text`, and the code points that each was cut from."""
    characters = _cleaned(text)
    if lowercase:
        characters = _folded(characters)
    tokens = []
    for word in _words(characters):
        pieces = _pieces("".join(character for character, _ in word), vocabulary)
        if pieces is None:
            tokens.append(("[UNK]", word[0][1], word[-1][1] + 1))
            continue
        start = 0
        for piece in pieces:
            end = start + len(piece) - (2 if start else 0)
            tokens.append((piece, word[start][1], word[end - 1][1] + 1))
            start = end
    return tokens
