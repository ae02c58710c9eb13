// A source of random numbers: a counted handle to what a device's room derives from it.
#pragma once

#include "lamina/core/device.h"
#include "lamina/core/intrusive_ptr.h"

namespace lamina {

class GeneratorImpl : public RefCounted {
 public:
  explicit GeneratorImpl(Device device) : device_(device) {}
  Device device() const { return device_; }

 private:
  Device device_;
};

using Generator = IntrusivePtr<GeneratorImpl>;  // null: the device's default generator

}  // namespace lamina
