#include "lamina/shape/reduce.h"

#include "lamina/core/error.h"

namespace lamina {

DimMask reduced_dims(int64_t ndim, std::optional<IntList> dims, bool empty_is_all, const char* op) {
  DimMask mask;
  if (!dims || (dims->empty() && empty_is_all)) {
    for (int64_t i = 0; i < ndim; ++i) mask.set(i);
    return mask;
  }
  for (const int64_t d : *dims) {
    const int64_t w = wrap_dim(d, ndim, op);
    LAMINA_CHECK(!mask[w], op, ": dim ", w, " appears multiple times in the list of dims; got ",
                 *dims);
    mask.set(w);
  }
  return mask;
}

Sizes reduced_sizes(IntList sizes, const DimMask& mask, bool keepdim) {
  Sizes out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!mask[i])
      out.push_back(sizes[i]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

}  // namespace lamina
