#define LAMINA_PACKED_LEVEL packed_avx2
#define LAMINA_PACKED_BYTES 32
#include "lamina/cpu/conv_kernels.inl"
