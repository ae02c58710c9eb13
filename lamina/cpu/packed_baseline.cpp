#define LAMINA_PACKED_LEVEL packed_baseline
#define LAMINA_PACKED_NAME "baseline"
#define LAMINA_PACKED_BYTES 16
#include "lamina/cpu/packed_kernels.inl"
