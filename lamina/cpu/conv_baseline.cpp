#define LAMINA_PACKED_LEVEL packed_baseline
#define LAMINA_PACKED_BYTES 16
#include "lamina/cpu/conv_kernels.inl"
