#define LAMINA_FFT_LEVEL fft_baseline
#define LAMINA_FFT_BYTES 16
#include "lamina/cpu/fft_passes.inl"
