#define LAMINA_PACKED_LEVEL packed_avx2
#define LAMINA_PACKED_NAME "avx2"
#define LAMINA_PACKED_BYTES 32
#include "lamina/cpu/packed_kernels.inl"
