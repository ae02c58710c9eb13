// The smallest reductions: one leaf of the tree, without sorting dimensions.
#include "lamina/core/scalar.h"
#include "lamina/tile/level.h"

namespace lamina::tile {

bool reduce_leaf(Reduce kind, ScalarType type, void* out, const void* x, int64_t n) {
  if (n < 1 || n > kLeaf) return false;
  Fold fold = Fold::sum;
  switch (kind) {
    case Reduce::sum:
      break;
    case Reduce::mean:
      if (type != ScalarType::Float32 && type != ScalarType::Float64) return false;
      break;
    case Reduce::prod:
      fold = Fold::prod;
      break;
    case Reduce::amax:
      fold = Fold::amax;
      break;
    case Reduce::amin:
      fold = Fold::amin;
      break;
    default:
      return false;
  }
  const FoldLeaf loop = level().fold_leaf[static_cast<int>(fold)][memory_slot(type)];
  if (!loop) return false;
  loop(out, x, n);
  if (kind == Reduce::mean) {
    if (type == ScalarType::Float32)
      *static_cast<float*>(out) /= static_cast<float>(n);
    else
      *static_cast<double*>(out) /= static_cast<double>(n);
  }
  return true;
}

}  // namespace lamina::tile
