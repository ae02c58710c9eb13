#define LAMINA_FFT_LEVEL fft_avx2
#define LAMINA_FFT_BYTES 32
#include "lamina/cpu/fft_passes.inl"
