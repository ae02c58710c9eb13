#include "lamina/core/dim.h"

#include "lamina/core/error.h"

namespace lamina {

void raise_dim_overflow(const char* what, int64_t a, int64_t b) {
  raise(ErrorKind::Runtime,
        str("size: the ", what, " of two sizes overflows 64 bits; got ", a, " and ", b));
}

Dim numel_of(IntList sizes) {
  // A zero anywhere makes the tensor empty whatever the other sizes are.
  Dim n = 1;
  bool empty = false;
  for (const int64_t s : sizes) empty |= s == 0;
  if (empty) return 0;
  for (const int64_t s : sizes) n *= s;
  return n;
}

int64_t wrap_odd_dim(int64_t dim, int64_t ndim, const char* op) {
  const int64_t range = ndim == 0 ? 1 : ndim;
  LAMINA_CHECK_INDEX(dim >= -range && dim < range, op,
                     ": Dimension out of range (expected to be in range of [", -range, ", ",
                     range - 1, "], but got ", dim, ")");
  return dim < 0 ? dim + range : dim;
}

}  // namespace lamina
