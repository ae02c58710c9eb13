// Dispatch keys, under PyTorch's names, and sets of them. A higher value is handled earlier in a
// call.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "lamina/core/device.h"

namespace lamina {

// X(name). Order is priority: backends, then layers from the innermost to the outermost.
// clang-format off: one a line
#define LAMINA_DISPATCH_KEYS(X) \
  X(Undefined) \
  X(CPU) \
  X(CUDA) \
  X(Meta) \
  X(QuantizedCPU) \
  X(QuantizedCUDA) \
  X(CustomRNGKeyId) \
  X(MkldnnCPU) \
  X(SparseCPU) \
  X(SparseCUDA) \
  X(SparseMeta) \
  X(SparseCsrCPU) \
  X(SparseCsrCUDA) \
  X(SparseCsrMeta) \
  X(NestedTensorCPU) \
  X(NestedTensorCUDA) \
  X(NestedTensorMeta) \
  X(PrivateUse1) \
  X(BackendSelect) \
  X(Python) \
  X(Fake) \
  X(FuncTorchDynamicLayerBackMode) \
  X(Functionalize) \
  X(Named) \
  X(Conjugate) \
  X(Negative) \
  X(ZeroTensor) \
  X(ADInplaceOrView) \
  X(AutogradOther) \
  X(AutogradFunctionality) \
  X(AutogradNestedTensor) \
  X(AutogradCPU) \
  X(AutogradCUDA) \
  X(AutogradMeta) \
  X(AutogradPrivateUse1) \
  X(Tracer) \
  X(AutocastCPU) \
  X(AutocastCUDA) \
  X(FuncTorchBatched) \
  X(BatchedNestedTensor) \
  X(FuncTorchVmapMode) \
  X(Batched) \
  X(VmapMode) \
  X(FuncTorchGradWrapper) \
  X(DeferredInit) \
  X(PythonTLSSnapshot) \
  X(FuncTorchDynamicLayerFrontMode) \
  X(TESTING_ONLY_GenericWrapper) \
  X(TESTING_ONLY_GenericMode) \
  X(PreDispatch) \
  X(PythonDispatcher)
// clang-format on

// Keys a kernel can be registered for but no tensor carries: each stands for a set of the above.
// clang-format off: one a line
#define LAMINA_ALIAS_KEYS(X) \
  X(Autograd) \
  X(CompositeImplicitAutograd) \
  X(FuncTorchBatchedDecomposition) \
  X(CompositeImplicitAutogradNestedTensor) \
  X(CompositeExplicitAutograd) \
  X(CompositeExplicitAutogradNonFunctional)
// clang-format on

enum class DispatchKey : uint8_t {
#define X(k) k,
  LAMINA_DISPATCH_KEYS(X) NumKeys,
  AliasBegin = 100,
  LAMINA_ALIAS_KEYS(X) AliasEnd
#undef X
};
inline constexpr int kNumDispatchKeys = static_cast<int>(DispatchKey::NumKeys);
static_assert(kNumDispatchKeys <= 64);

std::string_view name(DispatchKey key);
DispatchKey parse_dispatch_key(std::string_view text);  // raises Value

class KeySet {
 public:
  constexpr KeySet() = default;
  constexpr KeySet(DispatchKey k)
      : bits_(k == DispatchKey::Undefined ? 0 : uint64_t{1} << static_cast<int>(k)) {}
  constexpr explicit KeySet(uint64_t bits) : bits_(bits) {}
  template <class... Keys>
  static constexpr KeySet of(Keys... keys) {
    return KeySet((uint64_t{0} | ... | KeySet(keys).bits_));
  }
  // Every key below `k`: what is left to do after the layer k.
  static constexpr KeySet below(DispatchKey k) {
    return KeySet((uint64_t{1} << static_cast<int>(k)) - 1);
  }

  constexpr uint64_t bits() const { return bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool has(DispatchKey k) const { return (bits_ & KeySet(k).bits_) != 0; }
  constexpr DispatchKey highest() const {
    return bits_ == 0 ? DispatchKey::Undefined
                      : static_cast<DispatchKey>(63 - std::countl_zero(bits_));
  }
  friend constexpr KeySet operator|(KeySet a, KeySet b) { return KeySet(a.bits_ | b.bits_); }
  friend constexpr KeySet operator&(KeySet a, KeySet b) { return KeySet(a.bits_ & b.bits_); }
  friend constexpr KeySet operator-(KeySet a, KeySet b) { return KeySet(a.bits_ & ~b.bits_); }
  friend constexpr bool operator==(KeySet a, KeySet b) = default;

 private:
  uint64_t bits_ = 0;
};

inline constexpr KeySet kBackendKeys =
    KeySet::below(DispatchKey::BackendSelect) - KeySet(DispatchKey::CustomRNGKeyId);
inline constexpr KeySet kAutogradKeys = KeySet::of(
    DispatchKey::AutogradOther, DispatchKey::AutogradNestedTensor, DispatchKey::AutogradCPU,
    DispatchKey::AutogradCUDA, DispatchKey::AutogradMeta, DispatchKey::AutogradPrivateUse1);
inline constexpr KeySet kAutocastKeys =
    KeySet::of(DispatchKey::AutocastCPU, DispatchKey::AutocastCUDA);
// What is left below the autograd layer.
inline constexpr KeySet kBelowAutograd = KeySet::below(DispatchKey::ADInplaceOrView);

constexpr DispatchKey backend_key(DeviceType type) {
  return type == DeviceType::CUDA   ? DispatchKey::CUDA
         : type == DeviceType::Meta ? DispatchKey::Meta
                                    : DispatchKey::CPU;
}
constexpr DispatchKey autograd_key(DeviceType type) {
  return type == DeviceType::CUDA   ? DispatchKey::AutogradCUDA
         : type == DeviceType::Meta ? DispatchKey::AutogradMeta
                                    : DispatchKey::AutogradCPU;
}
// The keys that every strided tensor on a device carries. Autograd is a layer that is entered and
// decides itself.
constexpr KeySet strided_keys(DeviceType type) {
  return KeySet::of(backend_key(type), autograd_key(type));
}

}  // namespace lamina
