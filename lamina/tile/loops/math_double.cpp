// Transcendental operations of double.
#include "lamina/tile/loops/math.h"

namespace lamina::tile::LAMINA_TILE_LEVEL {
void fill_math_double(Level& l) { fill_math<double>(l); }
}  // namespace lamina::tile::LAMINA_TILE_LEVEL
