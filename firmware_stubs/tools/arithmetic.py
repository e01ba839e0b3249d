"""Makes numpy add in the same order on every run, if it is imported before numpy.

The order in which numpy's OpenBLAS adds depends on its number of threads, and so do the last bits of the weights. Two,
three and four threads gave the same bits for the network's shapes, one gave others. So there are always two.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "2"
