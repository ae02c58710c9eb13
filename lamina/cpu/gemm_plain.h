// Products that need no library and no packing.
#pragma once

#include "lamina/cpu/gemm.h"

namespace lamina::cpu {

inline constexpr int64_t kDirectEdge = 16;
inline constexpr int64_t kDirectWork = 8 * 8 * 8;

void run_reference(const Gemm& g);
bool direct_accepts(const Gemm& g, const char** reason);
void run_direct(const Gemm& g);

// Matrix times vector in integers, float16 and bfloat16.
bool vector_accepts(const Gemv& g);
void run_vector(const Gemv& g);

}  // namespace lamina::cpu
