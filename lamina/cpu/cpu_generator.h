// The generator handle of the CPU: what lamina.Generator() makes and kernels get.
#pragma once

#include "lamina/core/error.h"
#include "lamina/core/generator.h"
#include "lamina/cpu/random.h"

namespace lamina::cpu {

class CpuGenerator final : public GeneratorImpl {
 public:
  CpuGenerator() : GeneratorImpl(kCpu) {}
  Mt19937Generator engine;
};

// The engine behind a handle; without one, the process's.
inline Mt19937Generator& engine_of(const Generator& g) {
  if (!g) return default_generator();
  LAMINA_CHECK(g->device().is_cpu(), "random: a generator of another device; got ",
               to_string(g->device()), "; expected cpu");
  return static_cast<CpuGenerator*>(g.get())->engine;
}

}  // namespace lamina::cpu
