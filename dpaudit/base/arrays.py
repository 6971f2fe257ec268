"""Names of array types, one for each type of entry. Shapes are given where an array is taken or returned."""

from typing import Any

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Bits = npt.NDArray[np.int8]  # zeros and ones
Masked = np.ma.MaskedArray[Any, np.dtype[Any]]
