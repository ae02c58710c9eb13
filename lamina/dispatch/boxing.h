// From a stack of values to a typed call and back, by signature.
#pragma once

#include <tuple>
#include <utility>

#include "lamina/core/error.h"
#include "lamina/dispatch/box.h"
#include "lamina/dispatch/operator.h"

namespace lamina::dispatch::detail {

[[noreturn]] void raise_boxed_type(size_t position, const Value& value);

// Unboxed<T> holds what a parameter of type T refers to while the call lasts.
template <class T>
struct Unboxed;

template <class T>
const T& get_as(const Value& v, size_t position) {
  if (const T* p = std::get_if<T>(&v)) return *p;
  raise_boxed_type(position, v);
}

template <>
struct Unboxed<const Tensor&> {
  Tensor t;
  Unboxed(const Value& v, size_t i) {
    if (!std::holds_alternative<std::monostate>(v)) t = get_as<Tensor>(v, i);
  }
  const Tensor& get() const { return t; }
};
template <>
struct Unboxed<TensorList> {
  const std::vector<Tensor>& list;
  Unboxed(const Value& v, size_t i) : list(get_as<std::vector<Tensor>>(v, i)) {}
  TensorList get() const { return list; }
};
template <>
struct Unboxed<const Scalar&> {
  Scalar s;
  Unboxed(const Value& v, size_t i) {
    if (const auto* n = std::get_if<int64_t>(&v))
      s = *n;
    else if (const auto* d = std::get_if<double>(&v))
      s = *d;
    else if (const auto* b = std::get_if<bool>(&v))
      s = *b;
    else
      s = get_as<Scalar>(v, i);
  }
  const Scalar& get() const { return s; }
};
template <>
struct Unboxed<int64_t> {
  int64_t n;
  Unboxed(const Value& v, size_t i) {
    if (const auto* s = std::get_if<Scalar>(&v))
      n = s->to_int();
    else
      n = get_as<int64_t>(v, i);
  }
  int64_t get() const { return n; }
};
template <>
struct Unboxed<double> {
  double d;
  Unboxed(const Value& v, size_t i) {
    if (const auto* n = std::get_if<int64_t>(&v))
      d = static_cast<double>(*n);
    else if (const auto* s = std::get_if<Scalar>(&v))
      d = s->to_double();
    else
      d = get_as<double>(v, i);
  }
  double get() const { return d; }
};
template <class T>
  requires std::is_same_v<T, bool> || std::is_same_v<T, ScalarType> || std::is_same_v<T, Device> ||
           std::is_same_v<T, Layout> || std::is_same_v<T, MemoryFormat>
struct Unboxed<T> {
  T v;
  Unboxed(const Value& value, size_t i) : v(get_as<T>(value, i)) {}
  T get() const { return v; }
};
template <>
struct Unboxed<const Generator&> {
  Generator g;
  Unboxed(const Value& v, size_t i) {
    if (!std::holds_alternative<std::monostate>(v)) g = get_as<Generator>(v, i);
  }
  const Generator& get() const { return g; }
};
template <>
struct Unboxed<std::string_view> {
  const std::string& s;
  Unboxed(const Value& v, size_t i) : s(get_as<std::string>(v, i)) {}
  std::string_view get() const { return s; }
};
template <>
struct Unboxed<IntList> {
  const std::vector<int64_t>& list;
  Unboxed(const Value& v, size_t i) : list(get_as<std::vector<int64_t>>(v, i)) {}
  IntList get() const { return list; }
};
template <>
struct Unboxed<ListView<double>> {
  const std::vector<double>& list;
  Unboxed(const Value& v, size_t i) : list(get_as<std::vector<double>>(v, i)) {}
  ListView<double> get() const { return list; }
};
template <class T>
struct Unboxed<std::optional<T>> {
  using Inner = std::conditional_t<std::is_same_v<T, Scalar>, const Scalar&, T>;
  std::optional<Unboxed<Inner>> inner;
  Unboxed(const Value& v, size_t i) {
    if (!std::holds_alternative<std::monostate>(v)) inner.emplace(v, i);
  }
  std::optional<T> get() const { return inner ? std::optional<T>(inner->get()) : std::nullopt; }
};
template <class T>
struct Unboxed<const std::optional<T>&> : Unboxed<std::optional<T>> {
  std::optional<T> kept;
  Unboxed(const Value& v, size_t i)
      : Unboxed<std::optional<T>>(v, i), kept(Unboxed<std::optional<T>>::get()) {}
  const std::optional<T>& get() const { return kept; }
};

template <class R>
struct PopResult {
  static R from(Stack& stack) {
    Unboxed<std::conditional_t<std::is_same_v<R, Scalar>, const Scalar&,
                               std::conditional_t<std::is_same_v<R, Tensor>, const Tensor&, R>>>
        u(stack.at(0), 0);
    return R(u.get());
  }
};
template <>
struct PopResult<std::vector<Tensor>> {
  static std::vector<Tensor> from(Stack& stack) {
    return get_as<std::vector<Tensor>>(stack.at(0), 0);
  }
};
template <>
struct PopResult<void> {
  static void from(Stack&) {}
};
template <class... Rs>
struct PopResult<std::tuple<Rs...>> {
  static std::tuple<Rs...> from(Stack& stack) {
    return pop(stack, std::index_sequence_for<Rs...>());
  }
  template <size_t... I>
  static std::tuple<Rs...> pop(Stack& stack, std::index_sequence<I...>) {
    return {get_as<Rs>(stack.at(I), I)...};
  }
};

template <class Signature>
struct Boxing;
template <class R, class... Args>
struct Boxing<R(Args...)> {
  // Boxed calls are rare (fallbacks, kernels written in Python) and there is one of each of these
  // functions for every operator: cold code is compiled for size.
  [[gnu::cold]] static void call_unboxed(RawKernel kernel, KeySet keys, Stack& stack) {
    run(kernel, keys, stack, std::index_sequence_for<Args...>());
  }
  template <size_t... I>
  [[gnu::cold]] static void run(RawKernel kernel, KeySet keys, Stack& stack,
                                std::index_sequence<I...>) {
    LAMINA_CHECK(stack.size() == sizeof...(Args), "dispatch: wrong number of boxed arguments; got ",
                 stack.size(), "; expected ", sizeof...(Args));
    Stack arguments;
    arguments.swap(stack);
    std::tuple<Unboxed<Args>...> unboxed{Unboxed<Args>(arguments[I], I)...};
    const auto f = reinterpret_cast<R (*)(KeySet, Args...)>(kernel);
    if constexpr (std::is_void_v<R>)
      f(keys, std::get<I>(unboxed).get()...);
    else
      push_result(stack, f(keys, std::get<I>(unboxed).get()...));
  }
  // Typed kernel for an operator whose winning kernel is boxed.
  template <const Operator& op>
  [[gnu::cold]] static R boxing_kernel(KeySet keys, Args... args) {
    Stack stack;
    stack.reserve(sizeof...(Args));
    (stack.push_back(box(args)), ...);
    op.run_boxed(keys, stack, true);
    return PopResult<R>::from(stack);
  }
};

}  // namespace lamina::dispatch::detail
