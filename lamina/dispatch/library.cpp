#include "lamina/dispatch/library.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "lamina/core/error.h"

namespace lamina::dispatch {

namespace {

// An operator that no paragraph describes. It and its strings live as long as the process: handles
// may be kept.
struct RuntimeOperator {
  std::string name, overload, schema, where;
  OperatorInfo info;
  Operator op{&info};
  bool defined = false;
};

struct State {
  std::map<std::string, std::unique_ptr<RuntimeOperator>, std::less<>> operators;
  std::map<DispatchKey, std::vector<Kernel>> fallbacks;
  std::map<std::string, int> places;  // how many libraries called themselves so
  std::atomic<uint64_t> generation{1};
};
State& state() {
  static auto* s = new State;
  return *s;
}

// Whether "name" or "name.overload" comes before `full_name` in the order of characters. No string
// is made: this is on the way of every call by name.
bool comes_before(const Operator* op, std::string_view full_name) {
  const std::string_view parts[] = {op->info().name, *op->info().overload ? "." : "",
                                    op->info().overload};
  for (const std::string_view part : parts) {
    const int order = part.compare(full_name.substr(0, part.size()));
    if (order != 0) return order < 0;
    full_name.remove_prefix(part.size());
  }
  return !full_name.empty();
}

const Operator* find_static(std::string_view full_name) {
  const auto* end = kStaticOperators + kNumStaticOperators;
  const auto* it = std::lower_bound(kStaticOperators, end, full_name, comes_before);
  if (it == end) return nullptr;
  const OperatorInfo& info = (*it)->info();
  const size_t name = std::strlen(info.name), overload = std::strlen(info.overload);
  // It does not come before; it is the one if it is as long and begins so.
  const bool same = full_name.size() == name + (overload ? overload + 1 : 0) &&
                    full_name.starts_with(info.name) && full_name.ends_with(info.overload) &&
                    (!overload || full_name[name] == '.');
  return same ? *it : nullptr;
}

struct ParsedName {
  std::string name, overload;
  uint32_t num_arguments = 0;
};

// The name of a schema and the number of its arguments; raises where brackets, arrow or name are
// wrong.
ParsedName parse_schema_name(std::string_view schema) {
  const auto fail = [&](const char* what) {
    raise(ErrorKind::Runtime, str("Library.define: malformed schema, ", what, "; got '", schema,
                                  "'; expected name(Tensor x) -> Tensor"));
  };
  const size_t open = schema.find('(');
  if (open == std::string_view::npos || open == 0) fail("no argument list");
  int depth = 0;
  size_t close = open;
  uint32_t arguments = 0;
  bool in_argument = false, star = false;
  for (; close < schema.size(); ++close) {
    const char c = schema[close];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (depth == 0) break;
    if (depth == 1 && c == ',') {
      arguments += in_argument && !star;
      in_argument = star = false;
    } else if (close > open && c != ' ') {
      star = !in_argument && c == '*';
      in_argument = true;
    }
  }
  if (close == schema.size() || schema[close] != ')') fail("the argument list does not end");
  arguments += in_argument && !star;
  const std::string_view rest = schema.substr(close + 1);
  if (rest.find("->") == std::string_view::npos) fail("no '->'");
  ParsedName out;
  const std::string_view full = schema.substr(0, open);
  const size_t dot = full.find('.');
  out.name = full.substr(0, dot);
  if (dot != std::string_view::npos) out.overload = full.substr(dot + 1);
  for (const char c : full)
    if (!(std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == ':'))
      fail("the name has an odd character");
  out.num_arguments = arguments;
  return out;
}

// Layers that have nothing to say about most operators.
bool lets_through(DispatchKey key) {
  static constexpr KeySet kLayers =
      KeySet::of(DispatchKey::BackendSelect, DispatchKey::Named, DispatchKey::ADInplaceOrView,
                 DispatchKey::Tracer, DispatchKey::Fake, DispatchKey::AutogradFunctionality) |
      kAutogradKeys | kAutocastKeys |
      KeySet::of(DispatchKey::FuncTorchVmapMode, DispatchKey::PythonTLSSnapshot,
                 DispatchKey::PreDispatch);
  return kLayers.has(key);
}

}  // namespace

const Operator* find_operator(std::string_view full_name) {
  if (const Operator* op = find_static(full_name)) return op;
  State& s = state();
  const std::lock_guard lock(detail::registration_mutex());
  const auto it = s.operators.find(full_name);
  return it != s.operators.end() && it->second->defined ? &it->second->op : nullptr;
}

std::vector<std::string> all_operator_names() {
  std::vector<std::string> names;
  for (size_t i = 0; i < kNumStaticOperators; ++i)
    names.push_back(kStaticOperators[i]->full_name());
  State& s = state();
  const std::lock_guard lock(detail::registration_mutex());
  for (const auto& [name, op] : s.operators)
    if (op->defined) names.push_back(name);
  return names;
}

uint64_t operator_generation() { return state().generation.load(std::memory_order_acquire); }

Library::Library(std::string ns, std::string where)
    : namespace_(std::move(ns)), where_(std::move(where)) {
  // A kernel is taken out again by the place it came from, so no two libraries share one.
  const std::lock_guard lock(detail::registration_mutex());
  const int number = ++state().places[where_];
  if (number > 1) where_ += str(" #", number);
}

Library::~Library() {
  State& s = state();
  const std::lock_guard lock(detail::registration_mutex());
  for (const Registered& r : kernels_) {
    if (const Operator* op = find_static(r.name))
      op->remove_kernel(r.key, where_);
    else if (const auto it = s.operators.find(r.name); it != s.operators.end())
      it->second->op.remove_kernel(r.key, where_);
  }
  for (const DispatchKey key : fallbacks_)
    std::erase_if(s.fallbacks[key], [&](const Kernel& k) { return k.where == where_; });
  for (const std::string& name : operators_) s.operators[name]->defined = false;
  if (!operators_.empty()) s.generation.fetch_add(1, std::memory_order_release);
  if (!fallbacks_.empty())
    for (size_t i = 0; i < kNumStaticOperators; ++i) kStaticOperators[i]->forget_resolutions();
}

std::string Library::qualify(std::string_view name) const {
  return name.find("::") != std::string_view::npos ? std::string(name)
                                                   : str(namespace_, "::", name);
}

namespace {
RuntimeOperator& runtime_operator(const std::string& full_name) {
  auto& slot = state().operators[full_name];
  if (!slot) {
    slot = std::make_unique<RuntimeOperator>();
    const size_t dot = full_name.find('.');
    slot->name = full_name.substr(0, dot);
    slot->overload = dot == std::string::npos ? "" : full_name.substr(dot + 1);
    slot->info = {
        slot->name.c_str(), slot->overload.c_str(), "", "", {}, nullptr, nullptr, 0, 0, 0};
  }
  return *slot;
}
}  // namespace

const Operator& Library::define(std::string_view schema) {
  const ParsedName parsed = parse_schema_name(schema);
  const std::string base = qualify(parsed.name);
  const std::string full = parsed.overload.empty() ? base : str(base, ".", parsed.overload);
  const std::lock_guard lock(detail::registration_mutex());
  LAMINA_CHECK(find_operator(full) == nullptr, "Library.define: the operator exists already; got ",
               full);
  RuntimeOperator& op = runtime_operator(full);
  op.schema = base + std::string(schema.substr(parsed.name.size()));
  op.where = where_;
  op.info.schema = op.schema.c_str();
  op.info.where = op.where.c_str();
  op.info.num_arguments = parsed.num_arguments;
  op.defined = true;
  operators_.push_back(full);
  state().generation.fetch_add(1, std::memory_order_release);
  return op.op;
}

void Library::add(std::string_view name, DispatchKey key, Kernel kernel) {
  const std::string full = qualify(name);
  kernel.where = where_;
  const std::lock_guard lock(detail::registration_mutex());
  const Operator* op = find_static(full);
  if (!op) op = &runtime_operator(full).op;
  op->add_kernel(key, std::move(kernel));
  kernels_.push_back({full, key});
}

void Library::implement(std::string_view name, DispatchKey key, BoxedKernel kernel) {
  add(name, key, Kernel{nullptr, kernel, false, {}});
}
void Library::implement_typed(std::string_view name, DispatchKey key, RawKernel kernel) {
  LAMINA_CHECK(find_static(qualify(name)) != nullptr,
               "Library.implement_typed: typed kernels need an operator known at build time; got ",
               qualify(name));
  add(name, key, Kernel{kernel, nullptr, false, {}});
}
void Library::fallthrough(std::string_view name, DispatchKey key) {
  add(name, key, Kernel{nullptr, nullptr, true, {}});
}

void Library::fallback(DispatchKey key, BoxedKernel kernel) {
  State& s = state();
  const std::lock_guard lock(detail::registration_mutex());
  s.fallbacks[key].push_back(Kernel{nullptr, kernel, false, where_});
  fallbacks_.push_back(key);
  for (size_t i = 0; i < kNumStaticOperators; ++i) kStaticOperators[i]->forget_resolutions();
}
void Library::fallthrough(DispatchKey key) {
  State& s = state();
  const std::lock_guard lock(detail::registration_mutex());
  s.fallbacks[key].push_back(Kernel{nullptr, nullptr, true, where_});
  fallbacks_.push_back(key);
  for (size_t i = 0; i < kNumStaticOperators; ++i) kStaticOperators[i]->forget_resolutions();
}

namespace detail {
Kernel fallback_for(DispatchKey key) {
  State& s = state();
  const std::lock_guard lock(detail::registration_mutex());
  const auto it = s.fallbacks.find(key);
  if (it != s.fallbacks.end() && !it->second.empty()) return it->second.back();
  if (const BoxedKernel builtin = builtin_fallback(key))
    return Kernel{nullptr, builtin, false,
                  key == DispatchKey::FuncTorchBatched ? "lamina/transforms/kernel.cpp"
                                                       : "lamina/composite/lazy_marks.cpp"};
  if (lets_through(key)) return Kernel{nullptr, nullptr, true, "lamina/dispatch/library.cpp"};
  return {};
}
}  // namespace detail

}  // namespace lamina::dispatch
