#define LAMINA_PACKED_LEVEL packed_avx512
#define LAMINA_PACKED_BYTES 64
#include "lamina/cpu/conv_kernels.inl"
