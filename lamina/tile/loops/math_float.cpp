// Transcendental operations of float.
#include "lamina/tile/loops/math.h"

namespace lamina::tile::LAMINA_TILE_LEVEL {
void fill_math_float(Level& l) { fill_math<float>(l); }
}  // namespace lamina::tile::LAMINA_TILE_LEVEL
