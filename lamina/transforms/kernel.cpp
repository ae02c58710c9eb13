// The key FuncTorchBatched: finds the level of a call and its rule; goes through the samples one by
// one where there is none.
#include <mutex>
#include <unordered_map>

#include "lamina/dispatch/library.h"
#include "lamina/kernels/result.h"
#include "lamina/ops/clone.h"
#include "lamina/ops/copy.h"
#include "lamina/ops/select.h"
#include "lamina/ops/stack.h"
#include "lamina/ops/unsqueeze.h"
#include "lamina/ops/zeros.h"
#include "lamina/transforms/rules.h"

namespace lamina::transforms {

namespace {

Parameters parse(std::string_view schema) {
  Parameters p;
  size_t at = schema.find('(') + 1;
  int depth = 0;
  size_t start = at;
  const auto take = [&](size_t end) {
    std::string_view text = schema.substr(start, end - start);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    if (text.empty() || text == "*") return;
    text = text.substr(0, text.find('='));
    const size_t space = text.rfind(' ');
    if (space == std::string_view::npos) return;
    p.names.emplace_back(text.substr(space + 1));
    std::string type(text.substr(0, space));
    if (const size_t mark = type.find('('); mark != std::string::npos)
      type.erase(mark, type.find(')') - mark + 1);
    p.types.push_back(std::move(type));
  };
  for (; at < schema.size(); ++at) {
    const char c = schema[at];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' && depth == 0) break;
    if (c == ')' || c == ']') --depth;
    if (c == ',' && depth == 0) {
      take(at);
      start = at + 1;
    }
  }
  take(at);
  return p;
}

void give_samples(Frame& f) {
  const auto give = [&](Tensor& t) {
    if (t.defined() && !f.is_batched(t)) t = wrap(f.with_samples(t), 0, f.level);
  };
  for (Value& v : f.stack) {
    if (auto* t = std::get_if<Tensor>(&v)) give(*t);
    if (auto* list = std::get_if<std::vector<Tensor>>(&v))
      for (Tensor& t : *list) give(t);
  }
}

// A composite on batched tensors is its own calls on batched tensors.
bool composite(Frame& f) {
  const auto found = f.op.resolution(DispatchKey::AutogradCPU);
  if (found.rule != "math kernel") return false;
  if (f.writes()) {
    f.op.call_boxed(strided_keys(DeviceType::CPU), f.stack);
    return true;
  }
  // Some composites write into a fresh copy of an operand that has no samples; with samples in
  // every operand they can.
  const Stack given = f.stack;
  for (const bool everywhere : {false, true}) {
    try {
      if (everywhere) give_samples(f);
      f.op.call_boxed(strided_keys(DeviceType::CPU), f.stack);
      return true;
    } catch (const BatchingError& error) {
      if (error.dynamic()) throw;
      f.stack = given;
    }
  }
  return false;
}

bool rule(Frame& f) {
  switch (static_cast<VmapRule>(f.op.info().vmap)) {
    case VmapRule::pointwise:
      return pointwise(f);
    case VmapRule::reduction:
      return reduction(f);
    case VmapRule::along_dimension:
      return along_dimension(f);
    case VmapRule::view:
      return view(f);
    case VmapRule::direct:
      return direct(f);
    case VmapRule::trailing:
      return trailing(f);
    case VmapRule::images:
      return images(f);
    case VmapRule::sized:
      return sized(f);
    case VmapRule::matrix:
      return matrix(f);
    case VmapRule::linear:
      return linear(f);
    case VmapRule::convolve:
      return convolve(f);
    case VmapRule::embed:
      return embed(f);
    case VmapRule::normalize:
      return normalize(f);
    case VmapRule::gather_rows:
      return gather_rows(f);
    case VmapRule::put_rows:
      return put_rows(f);
    case VmapRule::fill:
      return fill(f);
    case VmapRule::slice_gradient:
      return slice_gradient(f);
    case VmapRule::likelihood:
      return likelihood(f);
    case VmapRule::normalize_groups:
      return normalize_groups(f);
    case VmapRule::normalize_batch:
      return normalize_batch(f);
    case VmapRule::convolve_gradient:
      return convolve_gradient(f);
    case VmapRule::random:
      return draw(f);
    case VmapRule::composite:
      return composite(f);
    case VmapRule::never:
      throw Error(ErrorKind::Runtime,
                  str("vmap: ", f.op.full_name(),
                      " changes the memory of a tensor, and one inside vmap has none of its own"));
    case VmapRule::dynamic:
      throw BatchingError(
          str("vmap: ", f.op.full_name(),
              " gives a tensor whose size depends on values, which can differ from sample to "
              "sample; got a batched tensor; use torch.where or masks of fixed size"),
          true);
    default:
      return false;
  }
}

void check_writes(const Frame& f) {
  for (size_t i = 0; i < f.stack.size(); ++i) {
    const Tensor* t = f.tensor(i);
    if (!f.is_written(i) || !t || f.is_batched(*t)) continue;
    throw BatchingError(
        str("vmap: ", f.op.info().name, "(", f.parameters.names[i],
            ", *extra_args) is not possible because there exists a Tensor `other` in extra_args "
            "that has more elements than `",
            f.parameters.names[i], "`. This happened due to `other` being vmapped over but `",
            f.parameters.names[i],
            "` not being vmapped over in a vmap. Please try to use out-of-place operators instead "
            "of ",
            f.op.info().name,
            ". If said operator is being called inside the PyTorch framework, please file a bug "
            "report instead."));
  }
}

}  // namespace

int Parameters::find(std::string_view name) const {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<int>(i);
  return -1;
}

const Parameters& parameters_of(const Operator& op) {
  static std::mutex mutex;
  static auto* all = new std::unordered_map<const Operator*, Parameters>;
  const std::lock_guard lock(mutex);
  const auto found = all->find(&op);
  if (found != all->end()) return found->second;
  return all->emplace(&op, parse(op.info().schema)).first->second;
}

const Operator& operator_named(std::string_view full_name) {
  const Operator* op = dispatch::find_operator(full_name);
  LAMINA_INTERNAL_CHECK(op, "vmap: no operator ", full_name);
  return *op;
}

bool Frame::is_batched(const Value& v) const {
  if (const auto* t = std::get_if<Tensor>(&v)) return is_batched(*t);
  if (const auto* list = std::get_if<std::vector<Tensor>>(&v))
    for (const Tensor& t : *list)
      if (is_batched(t)) return true;
  return false;
}

Tensor Frame::aligned(const Tensor& t, int64_t rank) const {
  if (!t.defined() || !is_batched(t)) return t;
  Tensor value = front(t, level);
  if (t.dim() == rank) return value;
  for (int64_t i = t.dim(); i < rank; ++i) value = ops::unsqueeze(value, 1);
  return value;
}

void Frame::call(int64_t dim) { call(op, dim); }

void Frame::call(const Operator& other, int64_t dim) {
  if (dispatch::keys_of(stack).empty())
    other.call_boxed(dispatch::effective(strided_keys(DeviceType::CPU)), stack);
  else
    other.call_boxed(stack);
  for (Value& v : stack) {
    if (auto* t = std::get_if<Tensor>(&v)) {
      if (t->defined()) *t = wrap(*t, dim, level);
    } else if (auto* list = std::get_if<std::vector<Tensor>>(&v)) {
      for (Tensor& item : *list)
        if (item.defined()) item = wrap(item, dim, level);
    }
  }
}

void Frame::give(const Tensor& value, int64_t dim) {
  stack.clear();
  stack.emplace_back(wrap(value, dim, level));
}

void loop(Frame& f) {
  const Stack given = f.stack;
  const int64_t rounds = std::max<int64_t>(f.size, 1);
  std::vector<Stack> results;
  std::vector<std::vector<Tensor>> new_values(given.size());  // by written argument
  // Without a sample the operator runs once on zeros, to see what its results look like.
  const auto sample = [&](const Tensor& t, int64_t i) {
    if (!t.defined() || !f.is_batched(t)) return t;
    const Batched& b = *batched(t);
    if (f.size == 0)
      return ops::zeros(t.sizes(), t.dtype(), std::nullopt, t.device(), std::nullopt);
    return ops::select(b.value, b.dim, i);
  };
  for (int64_t i = 0; i < rounds; ++i) {
    Stack s = given;
    std::vector<std::pair<Tensor, size_t>> written;
    for (size_t k = 0; k < s.size(); ++k) {
      if (auto* t = std::get_if<Tensor>(&s[k])) {
        *t = sample(*t, i);
        if (!f.is_written(k)) continue;
        // Written apart: a write to one sample must not look like one to what was kept of another.
        *t = ops::clone(*t);
        written.emplace_back(*t, k);
      } else if (auto* list = std::get_if<std::vector<Tensor>>(&s[k])) {
        for (Tensor& t : *list) t = sample(t, i);
      }
    }
    f.op.call_boxed(s);
    for (const auto& [target, k] : written) new_values[k].push_back(target);
    for (Value& v : s)
      if (auto* t = std::get_if<Tensor>(&v))
        for (const auto& [target, k] : written)
          if (t->is_same(target)) *t = std::get<Tensor>(given[k]);
    results.push_back(std::move(s));
  }
  for (size_t k = 0; k < given.size() && f.size > 0; ++k)
    if (!new_values[k].empty())
      ops::copy_(front(std::get<Tensor>(given[k]), f.level), ops::stack(new_values[k], 0), false);
  const auto joined = [&](auto&& item) {
    std::vector<Tensor> parts;
    for (const Stack& s : results) parts.push_back(item(s));
    // A written argument comes back as it was given.
    if (!parts[0].defined() || (f.writes() && f.is_batched(parts[0]))) return parts[0];
    for (const Tensor& p : parts)
      LAMINA_CHECK(p.sizes() == parts[0].sizes(), "vmap: ", f.op.full_name(),
                   " gives results of different sizes for different samples; got ",
                   parts[0].sizes(), " and ", p.sizes(), "; expected one size");
    if (f.size > 0) return wrap(ops::stack(parts, 0), 0, f.level);
    Sizes sizes{0};
    for (const int64_t s : parts[0].sizes()) sizes.push_back(s);
    const Tensor none =
        ops::zeros(sizes, parts[0].dtype(), std::nullopt, parts[0].device(), std::nullopt);
    return wrap(none, 0, f.level);
  };
  const Stack& first = results[0];
  f.stack.clear();
  for (size_t k = 0; k < first.size(); ++k) {
    if (std::holds_alternative<Tensor>(first[k])) {
      f.stack.emplace_back(joined([&](const Stack& s) { return std::get<Tensor>(s[k]); }));
    } else if (const auto* list = std::get_if<std::vector<Tensor>>(&first[k])) {
      std::vector<Tensor> all;
      for (const Stack& s : results)
        LAMINA_CHECK(
            std::get<std::vector<Tensor>>(s[k]).size() == list->size(), "vmap: ", f.op.full_name(),
            " gives lists of different lengths for different samples; expected one length");
      for (size_t j = 0; j < list->size(); ++j)
        all.push_back(
            joined([&](const Stack& s) { return std::get<std::vector<Tensor>>(s[k])[j]; }));
      f.stack.emplace_back(std::move(all));
    } else if (std::holds_alternative<std::monostate>(first[k])) {
      f.stack.emplace_back();
    } else {
      raise_item(str("asking ", f.op.full_name(), " for a number or a bool"));
    }
  }
}

void batched_kernel(const Operator& op, KeySet keys, Stack& stack) {
  int64_t level = -1;
  for (const Value& v : stack) {
    if (const auto* t = std::get_if<Tensor>(&v))
      level = std::max(level, level_of(*t));
    else if (const auto* list = std::get_if<std::vector<Tensor>>(&v))
      level = std::max(level, level_of(*list));
  }
  if (level < 0) return op.call_boxed(keys - DispatchKey::FuncTorchBatched, stack);
  int64_t size = -1;
  const auto check = [&](const Tensor& t) {
    if (level_of(t) != level) return;
    const Batched& b = *batched(t);
    const int64_t n = b.value.sizes()[b.dim];
    LAMINA_CHECK(size < 0 || size == n, "vmap: ", op.full_name(),
                 ": tensors of one level have different numbers of samples; got ", size, " and ",
                 n);
    size = n;
  };
  for (const Value& v : stack) {
    if (const auto* t = std::get_if<Tensor>(&v))
      check(*t);
    else if (const auto* list = std::get_if<std::vector<Tensor>>(&v))
      for (const Tensor& t : *list) check(t);
  }
  Frame f(op, stack, level, size);
  if (f.writes()) check_writes(f);
  if (rule(f)) return;
  // A rule of a composite that gave way, and operators made at run time.
  const auto kind = static_cast<VmapRule>(op.info().vmap);
  const bool tried =
      kind == VmapRule::composite || (kind == VmapRule::loop && op.info().call_unboxed);
  if (!tried && composite(f)) return;
  if (kind == VmapRule::random) raise_item("drawing numbers in a way that depends on values");
  loop(f);
}

}  // namespace lamina::transforms
