"""Imported before numpy: the same sums on every run.

numpy's OpenBLAS adds in another order with one thread than with two, so the weights hang on their number. With two,
three and four it gave the same bits for these shapes; two it is.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "2"
