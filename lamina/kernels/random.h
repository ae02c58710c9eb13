// Generators as users hold them.
#pragma once

#include "lamina/core/generator.h"
#include "lamina/cpu/random.h"

namespace lamina {

class CpuGenerator : public GeneratorImpl {
 public:
  CpuGenerator() : GeneratorImpl(kCpu) {}
  cpu::Mt19937Generator& engine() { return engine_; }

 private:
  cpu::Mt19937Generator engine_;
};

// The engine of a generator, the process's default one for null. Raises Runtime for one of another
// device.
cpu::Mt19937Generator& engine_of(const Generator& generator);

}  // namespace lamina
