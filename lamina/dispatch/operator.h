// An operator: schema, kernels by key, and the table that a call reads. The handle is a constant;
// its table fills at the first call of each key.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "lamina/dispatch/box.h"
#include "lamina/dispatch/local_state.h"
#include "lamina/dispatch/value.h"

namespace lamina::dispatch {

class Operator;

using RawKernel =
    void (*)();  // R (*)(KeySet, Args...) of the operator's signature, its type erased
using BoxedKernel = void (*)(const Operator& op, KeySet keys, Stack& stack);

// Kernels known at build time.
struct StaticKernel {
  DispatchKey key;
  RawKernel function;
  const char* where;  // file:line
};

struct OperatorInfo {
  const char* name;      // "aten::add"
  const char* overload;  // "Tensor", or ""
  const char* schema;  // "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
  const char* where;   // file:line of the paragraph
  std::span<const StaticKernel> kernels;
  void (*call_unboxed)(RawKernel kernel, KeySet keys,
                       Stack& stack);  // null: known at run time only, always boxed
  RawKernel boxing_kernel;  // typed; boxes its arguments and runs the operator's boxed kernel
  uint32_t num_arguments;
  uint32_t vmap;     // generated::VmapRule: what the operator does with batched tensors
  uint64_t written;  // bit i: argument i is written to
};

// A kernel of the list above or one registered at run time.
struct Kernel {
  RawKernel function = nullptr;
  BoxedKernel boxed = nullptr;
  bool fallthrough = false;
  std::string where;
};

struct RuntimeKernels;  // what libraries registered for one operator

class Operator {
 public:
  // One of the op list: zeros, so that its table costs nothing on disk. Who it is is looked up in
  // kStaticInfos (library.h) when somebody first asks.
  constexpr Operator() = default;
  constexpr explicit Operator(const OperatorInfo* info) : info_(info) {}
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  const OperatorInfo& info() const {
    const OperatorInfo* known = info_.load(std::memory_order_acquire);
    return known ? *known : find_info();
  }
  std::string full_name() const;  // "aten::add.Tensor"

  // The kernel that a call with these keys runs, with the keys that have nothing to do taken out of
  // `keys`.
  __attribute__((always_inline)) RawKernel lookup(KeySet& keys) const {
    keys = KeySet(keys.bits() & ~skipped_.load(std::memory_order_relaxed));
    const RawKernel f = table_[static_cast<int>(keys.highest())].load(std::memory_order_acquire);
    return f ? f : resolve(keys);
  }
  void call_boxed(KeySet keys, Stack& stack) const { run_boxed(keys, stack, false); }
  void call_boxed(Stack& stack) const;
  // The same. `announced`: a typed call of this operator with these keys has told the observer.
  void run_boxed(KeySet keys, Stack& stack, bool announced) const;

  // Which kernel serves `key`, and by which rule: "kernel", "math kernel", "autograd kernel",
  // "default backend kernel", "backend fallback"; empty where there is none.
  struct Resolution {
    Kernel kernel;
    std::string_view rule;
  };
  Resolution resolution(DispatchKey key) const;
  bool has_kernel(DispatchKey key) const;  // registered for exactly this key, alias keys included
  std::string dump_table() const;

  // Run-time registration; used by Library.
  void add_kernel(DispatchKey key, Kernel kernel) const;
  void remove_kernel(DispatchKey key, const std::string& where) const;
  void forget_resolutions() const;

 private:
  RawKernel resolve(KeySet& keys) const;
  [[noreturn]] void raise_missing(KeySet keys) const;
  [[gnu::cold]] const OperatorInfo& find_info() const;

  mutable std::atomic<const OperatorInfo*> info_{nullptr};
  mutable std::atomic<uint64_t> skipped_{0};
  mutable std::atomic<RawKernel> table_[kNumDispatchKeys] = {};
  mutable std::atomic<RuntimeKernels*> runtime_{nullptr};
};

// Is told values one after the other: the arguments of a call in order of its schema, or its
// results.
class ValueReader {
 public:
  virtual ~ValueReader() = default;
  virtual void begin(bool results) = 0;
  virtual void none() = 0;
  virtual void tensor(const Tensor& t) = 0;  // defined
  virtual void tensors(TensorList list) = 0;
  virtual void scalar(const Scalar& number) = 0;  // numbers, and bool
  virtual void text(std::string_view s) = 0;
  virtual void integers(IntList list) = 0;
  virtual void reals(ListView<double> list) = 0;
  virtual void other(const Value& v) = 0;
  virtual void end() = 0;
};

// Sees calls go by while it is set on this thread.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_call(const Operator& op, KeySet keys, RawKernel kernel) = 0;
  virtual void on_return(const Operator& op) = 0;
  // Who is to be told arguments and results; null: nobody.
  virtual ValueReader* values() { return nullptr; }
};

class ObserverGuard {
 public:
  explicit ObserverGuard(Observer* o) : before_(t_local.observer) { t_local.observer = o; }
  ~ObserverGuard() { t_local.observer = before_; }
  ObserverGuard(const ObserverGuard&) = delete;
  ObserverGuard& operator=(const ObserverGuard&) = delete;

 private:
  Observer* before_;
};

namespace detail {
struct ObservedCall {
  ObservedCall(const Operator& op, KeySet keys, RawKernel kernel)
      : op_(op), observer_(t_local.observer) {
    observer_->on_call(op, keys, kernel);
  }
  ~ObservedCall() { observer_->on_return(op_); }
  ObservedCall(const ObservedCall&) = delete;
  ObservedCall& operator=(const ObservedCall&) = delete;
  ValueReader* values() const { return observer_->values(); }
  const Operator& op_;
  Observer* observer_;
};

// Says one value.
inline void tell(ValueReader& r, const Tensor& t) { t.defined() ? r.tensor(t) : r.none(); }
inline void tell(ValueReader& r, TensorList list) { r.tensors(list); }
inline void tell(ValueReader& r, const std::vector<Tensor>& list) { r.tensors(list); }
inline void tell(ValueReader& r, const Scalar& v) { r.scalar(v); }
inline void tell(ValueReader& r, int64_t v) { r.scalar(v); }
inline void tell(ValueReader& r, double v) { r.scalar(v); }
inline void tell(ValueReader& r, bool v) { r.scalar(v); }
inline void tell(ValueReader& r, std::string_view v) { r.text(v); }
inline void tell(ValueReader& r, IntList v) { r.integers(v); }
inline void tell(ValueReader& r, ListView<double> v) { r.reals(v); }
template <class T>
  requires std::is_same_v<T, ScalarType> || std::is_same_v<T, Device> ||
           std::is_same_v<T, Layout> || std::is_same_v<T, MemoryFormat> ||
           std::is_same_v<T, Generator>
void tell(ValueReader& r, const T& v) {
  r.other(box(v));
}
template <class T>
void tell(ValueReader& r, const std::optional<T>& v) {
  v ? tell(r, *v) : r.none();
}
template <class... Rs>
void tell(ValueReader& r, const std::tuple<Rs...>& results) {
  std::apply([&](auto&... v) { (tell(r, v), ...); }, results);
}
void tell(ValueReader& r, const Stack& stack);

template <class Signature>
struct Caller;
template <class R, class... Args>
struct Caller<R(Args...)> {
  __attribute__((always_inline)) static R run(const Operator& op, KeySet keys, Args... args) {
    const RawKernel raw = op.lookup(keys);
    const auto kernel = reinterpret_cast<R (*)(KeySet, Args...)>(raw);
    if (t_local.observer) [[unlikely]]
      return run_observed(op, keys, raw, std::forward<Args>(args)...);
    return kernel(keys, std::forward<Args>(args)...);
  }
  __attribute__((noinline, cold)) static R run_observed(const Operator& op, KeySet keys,
                                                        RawKernel raw, Args... args) {
    const ObservedCall observed(op, keys, raw);
    const auto kernel = reinterpret_cast<R (*)(KeySet, Args...)>(raw);
    ValueReader* const values = observed.values();
    if (!values) return kernel(keys, std::forward<Args>(args)...);
    values->begin(false);
    (tell(*values, args), ...);
    values->end();
    if constexpr (std::is_void_v<R>) {
      kernel(keys, std::forward<Args>(args)...);
    } else {
      R result = kernel(keys, std::forward<Args>(args)...);
      values->begin(true);
      tell(*values, result);
      values->end();
      return result;
    }
  }
};
}  // namespace detail

// The keys of a call: what its tensors carry and this thread adds, without what this thread takes
// out.
inline KeySet effective(KeySet keys) { return (keys | t_local.included) - t_local.excluded; }

[[noreturn]] void raise_undefined(const Operator& op, const char* argument);

inline KeySet keys_of(const Tensor& t) { return t.keys(); }
// Of an argument that must be there; raises Runtime for an undefined tensor.
__attribute__((always_inline)) inline KeySet required_keys(const Tensor& t, const Operator& op,
                                                           const char* argument) {
  if (!t.defined()) [[unlikely]]
    raise_undefined(op, argument);
  return t.impl()->keys();
}
inline KeySet keys_of(TensorList list) {
  KeySet keys = list.empty() ? strided_keys(DeviceType::CPU) : KeySet();
  for (const Tensor& t : list) keys = keys | t.keys();
  return keys;
}
inline KeySet required_keys(TensorList list, const Operator& op, const char* argument) {
  KeySet keys = list.empty() ? strided_keys(DeviceType::CPU) : KeySet();
  for (const Tensor& t : list) keys = keys | required_keys(t, op, argument);
  return keys;
}
// Tensors that may be absent, lists of them, key sets of those that may not.
inline KeySet keys_of(KeySet keys) { return keys; }
template <class... Tensors>
__attribute__((always_inline)) inline KeySet keys_of_all(const Tensors&... tensors) {
  return effective((KeySet() | ... | keys_of(tensors)));
}

// For operators without tensor arguments.
KeySet keys_of_device(std::optional<Device> device);

// Typed call from the highest key, and from what a layer has left.
template <class Signature, class... Args>
__attribute__((always_inline)) inline decltype(auto) call(const Operator& op, KeySet keys,
                                                          Args&&... args) {
  return detail::Caller<Signature>::run(op, keys, std::forward<Args>(args)...);
}

}  // namespace lamina::dispatch
