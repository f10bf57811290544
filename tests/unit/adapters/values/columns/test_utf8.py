import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from kernel_build.development import compile_now
from pyspark_kafka.adapters.kernels.kernel import kernel
from pyspark_kafka.adapters.values.columns.utf8 import is_utf8


@compile_now
@kernel("int64", "int64")
def check(start: int, size: int) -> bool:
    return bool(is_utf8(start, size))


def is_valid(text: bytes) -> bool:
    array = np.frombuffer(text + b"\x80", np.uint8)
    return check(array.ctypes.data, len(text))


def python_accepts(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


ALMOST = st.lists(
    st.sampled_from([b"a", b"abcdefgh", "é".encode(), "€".encode(), "😀".encode()])
    | st.binary(min_size=1, max_size=2),
    max_size=8,
).map(b"".join)


@given(ALMOST)
@example(b"\xed\xa0\x80")
@example(b"\xf4\x90\x80\x80")
@example(b"\xe0\x80\x80")
@example(b"12345678\xe2\x82")
def test_the_kernel_accepts_what_python_accepts(text):
    assert is_valid(text) == python_accepts(text)
