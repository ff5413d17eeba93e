"""Short texts that nobody expects, for hypothesis."""

from hypothesis import strategies as st

# Letters and marks that the small vocabulary knows, wide, composed, joined, right to left, beyond
# the BMP, and NUL; any text; and bytes that need not be UTF-8.
awkward_texts = st.one_of(
    st.text(st.sampled_from("abz é中.!-'\u0301\u200b\u05d0\U0001f600\0"), max_size=60),
    st.text(max_size=20),
    st.binary(max_size=20),
)
