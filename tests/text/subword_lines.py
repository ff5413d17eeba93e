"""Lines to train and try subword models on, written for these tests: many languages and scripts."""

from itertools import product

ENGLISH = (
    "A small dog sleeps under the table in the kitchen.",
    "Two children carry a red bucket across the beach.",
    "The old man reads a newspaper while he waits for the bus.",
    "We bought three loaves of bread, some cheese and a bottle of milk.",
    "She is painting the fence of her garden with blue paint!",
    "Is the train to the harbour late again this morning?",
    "A woman in a yellow coat rides her bicycle through the rain.",
    "The teacher writes the numbers 12, 45 and 300 on the board.",
)
GERMAN = (
    "Ein kleiner Hund schläft unter dem Tisch in der Küche.",
    "Zwei Kinder tragen einen roten Eimer über den Strand.",
    "Der alte Mann liest eine Zeitung, während er auf den Bus wartet.",
    "Wir haben drei Brote, etwas Käse und eine Flasche Milch gekauft.",
    "Sie streicht den Zaun ihres Gartens mit blauer Farbe!",
    "Hat der Zug zum Hafen heute Morgen schon wieder Verspätung?",
    "Eine Frau in gelbem Mantel fährt mit dem Fahrrad durch den Regen.",
    "Die Lehrerin schreibt die Zahlen 12, 45 und 300 an die Tafel.",
)
# No model here is trained on these.
OTHERS = (
    "Кошка спит на подоконнике, а за окном идёт снег.",
    "Η γάτα κοιμάται δίπλα στο παράθυρο.",
    "القطة تنام بجانب النافذة، والجو بارد.",
    "החתול ישן ליד החלון.",
    "बिल्ली खिड़की के पास सो रही है।",
    "ကြောင်လေးသည် ပြတင်းပေါက်နားတွင် အိပ်နေသည်။",
    "แมวนอนอยู่ข้างหน้าต่าง",
    "猫が窓のそばで眠っている。ﾈｺ、１２匹。",
    "猫在窗边睡觉，外面下着雪。",
    "고양이가 창가에서 자고 있다.",
    "Con mèo ngủ bên cửa sổ; trời lạnh.",
    "Kedi pencerenin yanında uyuyor, İstanbul'da kar var.",
    "ድመቷ በመስኮቱ አጠገብ ትተኛለች።",
    "Կատուն քնած է պատուհանի մոտ։",
    "I love 🐈‍⬛ and 👩🏽‍🚀, it costs 5 € (≈ 6,40 $)…",
    "  ﬁne  ①  ½\tTab, no\u00a0break, e\u0301 and é \u200b",
    "<s> x </s> <pad> <unk> [MASK] ▁ <0x41> http://a.example/?q=1&r=%20",
)


def mixed_lines() -> list[str]:
    """Each line above alone and before each other one: more than a thousand."""
    every = (*ENGLISH, *GERMAN, *OTHERS)
    return [" ".join(dict.fromkeys(pair)) for pair in product(every, every)]
