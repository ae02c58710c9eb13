#include "lamina/dispatch/operator.h"

#include <map>
#include <mutex>

#include "lamina/core/error.h"
#include "lamina/dispatch/boxing.h"
#include "lamina/dispatch/library.h"

namespace lamina::dispatch {

constinit thread_local LocalState t_local;

// Kernels registered at run time, newest last. Never freed once made: a call may be reading it.
struct RuntimeKernels {
  std::multimap<DispatchKey, Kernel> kernels;
};

namespace {

constexpr bool is_backend(DispatchKey key) {
  return key == DispatchKey::Undefined || kBackendKeys.has(key);
}

}  // namespace

void raise_undefined(const Operator& op, const char* argument) {
  const std::string_view name = op.info().name;
  raise(ErrorKind::Runtime, str(name.substr(name.find("::") + 2), ": argument '", argument,
                                "' is an undefined tensor; expected a tensor"));
}

KeySet keys_of_device(std::optional<Device> device) {
  return effective(strided_keys(device.value_or(kCpu).type));
}

KeySet keys_of(const Stack& stack) {
  KeySet keys;
  for (const Value& v : stack) {
    if (const auto* t = std::get_if<Tensor>(&v)) keys = keys | t->keys();
    if (const auto* list = std::get_if<std::vector<Tensor>>(&v))
      for (const Tensor& t : *list) keys = keys | t.keys();
  }
  return keys;
}

std::string Operator::full_name() const {
  const OperatorInfo& i = info();
  return *i.overload ? str(i.name, ".", i.overload) : std::string(i.name);
}

const OperatorInfo& Operator::find_info() const {
  // All at once: an entry each, and whoever asks for one asks for more. Doing it twice does no
  // harm.
  for (size_t i = 0; i < kNumStaticOperators; ++i)
    kStaticOperators[i]->info_.store(kStaticInfos[i], std::memory_order_release);
  const OperatorInfo* known = info_.load(std::memory_order_acquire);
  LAMINA_INTERNAL_CHECK(known, "an operator that is not in the op list has no information");
  return *known;
}

namespace {
// The kernel registered for exactly `key` (an alias key counts as itself): the newest at run time,
// else the static one.
bool registered(const OperatorInfo& info, const RuntimeKernels* runtime, DispatchKey key,
                Kernel& out) {
  if (runtime) {
    auto [first, last] = runtime->kernels.equal_range(key);
    if (first != last) {
      out = std::prev(last)->second;
      return true;
    }
  }
  for (const StaticKernel& k : info.kernels)
    if (k.key == key) {
      // A null function lets the key through.
      out = Kernel{k.function, nullptr, k.function == nullptr, k.where};
      return true;
    }
  return false;
}

DispatchKey backend_of_autograd(DispatchKey key) {
  switch (key) {
    case DispatchKey::AutogradCPU:
      return DispatchKey::CPU;
    case DispatchKey::AutogradCUDA:
      return DispatchKey::CUDA;
    case DispatchKey::AutogradMeta:
      return DispatchKey::Meta;
    case DispatchKey::AutogradPrivateUse1:
      return DispatchKey::PrivateUse1;
    case DispatchKey::AutogradNestedTensor:
      return DispatchKey::NestedTensorCPU;
    default:
      return DispatchKey::Undefined;
  }
}
}  // namespace

bool Operator::has_kernel(DispatchKey key) const {
  const std::lock_guard lock(detail::registration_mutex());
  Kernel ignored;
  return registered(info(), runtime_.load(), key, ignored);
}

Operator::Resolution Operator::resolution(DispatchKey key) const {
  const std::lock_guard lock(detail::registration_mutex());
  const RuntimeKernels* runtime = runtime_.load();
  Kernel k;
  // 1. A kernel for this very key.
  if (registered(info(), runtime, key, k))
    return {k, kAutogradKeys.has(key) ? "autograd kernel" : "kernel"};
  // 2. Backends: kernels that serve every backend and leave gradients to their own autograd kernel.
  if (is_backend(key)) {
    for (const DispatchKey alias : {DispatchKey::CompositeExplicitAutogradNonFunctional,
                                    DispatchKey::CompositeExplicitAutograd})
      if (registered(info(), runtime, alias, k)) return {k, "default backend kernel"};
  }
  // 3. Composites, which need neither a kernel nor a gradient; a backend's own kernel takes over
  // its autograd key too.
  if (is_backend(key) || kAutogradKeys.has(key)) {
    Kernel own;
    const DispatchKey backend = backend_of_autograd(key);
    const bool taken_over =
        kAutogradKeys.has(key) && backend != DispatchKey::Undefined &&
        (registered(info(), runtime, backend, own) ||
         registered(info(), runtime, DispatchKey::CompositeExplicitAutograd, own));
    if (!taken_over && registered(info(), runtime, DispatchKey::CompositeImplicitAutograd, k))
      return {k, "math kernel"};
  }
  // 4. One autograd kernel for all backends.
  if (kAutogradKeys.has(key) && registered(info(), runtime, DispatchKey::Autograd, k))
    return {k, "autograd kernel"};
  // 5. What the key does with every operator.
  k = detail::fallback_for(key);
  if (k.boxed || k.fallthrough) return {k, "backend fallback"};
  return {};
}

RawKernel Operator::resolve(KeySet& keys) const {
  const std::lock_guard lock(detail::registration_mutex());
  for (;;) {
    const DispatchKey key = keys.highest();
    const Resolution r = resolution(key);
    if (r.kernel.fallthrough) {
      skipped_.fetch_or(KeySet(key).bits(), std::memory_order_relaxed);
      keys = keys - key;
      continue;
    }
    RawKernel f = r.kernel.function;
    if (!f && r.kernel.boxed) f = info().boxing_kernel;
    if (!f) raise_missing(keys);
    table_[static_cast<int>(key)].store(f, std::memory_order_release);
    return f;
  }
}

void Operator::call_boxed(Stack& stack) const { call_boxed(effective(keys_of(stack)), stack); }

void Operator::run_boxed(KeySet keys, Stack& stack, bool announced) const {
  for (;;) {
    keys = KeySet(keys.bits() & ~skipped_.load(std::memory_order_relaxed));
    const DispatchKey key = keys.highest();
    const RawKernel known = table_[static_cast<int>(key)].load(std::memory_order_acquire);
    if (known && known != info().boxing_kernel && info().call_unboxed && !t_local.observer) {
      info().call_unboxed(known, keys, stack);
      return;
    }
    const Resolution r = resolution(key);
    if (r.kernel.fallthrough) {
      keys = keys - key;
      continue;
    }
    if (!r.kernel.boxed && (!r.kernel.function || !info().call_unboxed)) raise_missing(keys);
    std::optional<detail::ObservedCall> observed;
    if (t_local.observer && !announced) [[unlikely]]
      observed.emplace(*this, keys, r.kernel.boxed ? info().boxing_kernel : r.kernel.function);
    ValueReader* const values = observed ? observed->values() : nullptr;
    const auto tell_all = [&](bool results) {
      if (!values) [[likely]]
        return;
      values->begin(results);
      detail::tell(*values, stack);
      values->end();
    };
    tell_all(false);
    if (r.kernel.boxed)
      r.kernel.boxed(*this, keys, stack);
    else
      info().call_unboxed(r.kernel.function, keys, stack);
    tell_all(true);
    return;
  }
}

void Operator::raise_missing(KeySet keys) const {
  const DispatchKey key = keys.highest();
  std::string have;
  for (int i = 1; i < kNumDispatchKeys; ++i) {
    const auto k = static_cast<DispatchKey>(i);
    if (!kBackendKeys.has(k)) continue;
    const Resolution r = resolution(k);
    if (!r.kernel.function && !r.kernel.boxed) continue;
    if (!have.empty()) have += ", ";
    have += name(k);
  }
  const std::string_view backend = key == DispatchKey::Undefined ? "no tensor argument" : name(key);
  raise(ErrorKind::NotImplemented,
        str("Could not run '", full_name(), "' with arguments from the '", backend,
            "' backend: the operator has no kernel there; it is available for these backends: [",
            have, "]; move the operands to one of them"));
}

std::string Operator::dump_table() const {
  std::string out;
  for (int i = 0; i < kNumDispatchKeys; ++i) {
    const auto key = static_cast<DispatchKey>(i);
    const Resolution r = resolution(key);
    if (r.rule.empty()) continue;
    out += str(name(key), ": ", r.kernel.fallthrough ? "fallthrough " : "", "registered at ",
               r.kernel.where, " [", r.rule, "]\n");
  }
  return out;
}

void Operator::forget_resolutions() const {
  const std::lock_guard lock(detail::registration_mutex());
  skipped_.store(0);
  for (auto& entry : table_) entry.store(nullptr);
}

void Operator::add_kernel(DispatchKey key, Kernel kernel) const {
  const std::lock_guard lock(detail::registration_mutex());
  RuntimeKernels* runtime = runtime_.load();
  if (!runtime) runtime_.store(runtime = new RuntimeKernels);
  runtime->kernels.emplace(key, std::move(kernel));
  forget_resolutions();
}

void Operator::remove_kernel(DispatchKey key, const std::string& where) const {
  const std::lock_guard lock(detail::registration_mutex());
  RuntimeKernels* runtime = runtime_.load();
  if (!runtime) return;
  auto [first, last] = runtime->kernels.equal_range(key);
  for (auto it = last; it != first;) {
    --it;
    if (it->second.where == where) {
      runtime->kernels.erase(it);
      break;
    }
  }
  forget_resolutions();
}

namespace detail {
void tell(ValueReader& r, const Stack& stack) {
  for (const Value& v : stack)
    std::visit(
        [&](const auto& x) {
          using T = std::decay_t<decltype(x)>;
          if constexpr (std::is_same_v<T, std::monostate>)
            r.none();
          else if constexpr (std::is_same_v<T, std::string>)
            r.text(x);
          else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
            r.integers(IntList(x.data(), x.size()));
          else if constexpr (std::is_same_v<T, std::vector<double>>)
            r.reals({x.data(), x.size()});
          else if constexpr (std::is_same_v<T, std::vector<bool>> ||
                             std::is_same_v<T, std::vector<Scalar>>)
            r.other(v);
          else
            tell(r, x);
        },
        v);
}

std::recursive_mutex& registration_mutex() {
  static auto* m = new std::recursive_mutex;  // outlives every static destructor
  return *m;
}

void raise_boxed_type(size_t position, const Value& value) {
  static constexpr const char* kNames[] = {
      "None",  "Tensor", "Scalar",  "int",          "float",    "bool",
      "str",   "int[]",  "float[]", "bool[]",       "Tensor[]", "Scalar[]",
      "dtype", "Device", "Layout",  "MemoryFormat", "Generator"};
  raise(ErrorKind::Type, str("dispatch: boxed argument ", position, " has the wrong type; got ",
                             kNames[value.index()]));
}
}  // namespace detail

}  // namespace lamina::dispatch
