// Products through OpenBLAS, one thread per call.
#pragma once

#include "lamina/cpu/gemm.h"

namespace lamina::cpu {

bool blas_accepts(const Gemm& g, const char** reason);
void run_blas(const Gemm& g);

// float and double with A in rows or columns that BLAS can take; positive strides of x and y.
bool blas_accepts_gemv(const Gemv& g);
void run_blas_gemv(const Gemv& g);

}  // namespace lamina::cpu
