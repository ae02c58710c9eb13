#define LAMINA_PACKED_LEVEL packed_pairs
#define LAMINA_PACKED_PAIRS
#define LAMINA_PACKED_BYTES 64
#include "lamina/cpu/packed_kernels.inl"
