// From typed values to boxed ones.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "lamina/dispatch/value.h"

namespace lamina::dispatch::detail {

// From a typed value to a boxed one.
inline Value box(const Tensor& t) { return t.defined() ? Value(t) : Value(); }
inline Value box(TensorList v) { return std::vector<Tensor>(v.begin(), v.end()); }
inline Value box(const std::vector<Tensor>& v) { return v; }
inline Value box(const Scalar& v) { return v; }
inline Value box(int64_t v) { return v; }
inline Value box(double v) { return v; }
inline Value box(bool v) { return v; }
inline Value box(std::string_view v) { return std::string(v); }
inline Value box(IntList v) { return std::vector<int64_t>(v.begin(), v.end()); }
inline Value box(ListView<double> v) { return std::vector<double>(v.begin(), v.end()); }
inline Value box(ScalarType v) { return v; }
inline Value box(Device v) { return v; }
inline Value box(Layout v) { return v; }
inline Value box(MemoryFormat v) { return v; }
inline Value box(const Generator& g) { return g ? Value(g) : Value(); }
template <class T>
Value box(const std::optional<T>& v) {
  return v ? box(*v) : Value();
}

template <class R>
void push_result(Stack& stack, const R& r) {
  stack.push_back(box(r));
}
template <class... Rs>
void push_result(Stack& stack, const std::tuple<Rs...>& r) {
  std::apply([&](auto&... v) { (stack.push_back(box(v)), ...); }, r);
}

}  // namespace lamina::dispatch::detail
