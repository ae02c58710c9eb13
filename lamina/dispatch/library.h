// Operators and kernels made at run time. What a library registered goes when it does.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/dispatch/operator.h"

namespace lamina::dispatch {

// Build-time and run-time operators by full name ("aten::add.Tensor"; the overload may be empty).
const Operator* find_operator(std::string_view full_name);
std::vector<std::string> all_operator_names();
// Grows whenever an operator is defined or goes: as long as it stays, so do the names.
uint64_t operator_generation();

class Library {
 public:
  explicit Library(std::string ns, std::string where = "run time");
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // "name.overload(Tensor x, int n=1) -> Tensor". Raises Runtime where the operator exists or the
  // schema is malformed.
  const Operator& define(std::string_view schema);
  // A boxed kernel for one operator and key; the schema may come later than the kernel, from
  // whatever library.
  void implement(std::string_view name, DispatchKey key, BoxedKernel kernel);
  // A typed kernel R(*)(KeySet, Args...) for an operator with a build-time signature.
  void implement_typed(std::string_view name, DispatchKey key, RawKernel kernel);
  void fallthrough(std::string_view name, DispatchKey key);
  // For every operator that has nothing better at this key.
  void fallback(DispatchKey key, BoxedKernel kernel);
  void fallthrough(DispatchKey key);

 private:
  void add(std::string_view name, DispatchKey key, Kernel kernel);
  std::string qualify(std::string_view name) const;

  struct Registered {
    std::string name;
    DispatchKey key;
  };
  std::string namespace_;
  std::string where_;
  std::vector<Registered> kernels_;
  std::vector<std::string> operators_;
  std::vector<DispatchKey> fallbacks_;
};

namespace detail {
// Guards every registration and every slow look-up.
std::recursive_mutex& registration_mutex();
// The fallback for a key: what a library set, or the build-in one (most layers let calls through).
Kernel fallback_for(DispatchKey key);
}  // namespace detail

// The boxed kernel that a key brings for every operator, or null; defined in composite/.
BoxedKernel builtin_fallback(DispatchKey key);

// Every operator of the op list, sorted by full name; generated.
extern const Operator* const kStaticOperators[];
extern const OperatorInfo* const kStaticInfos[];  // in the same order
extern const size_t kNumStaticOperators;

}  // namespace lamina::dispatch
