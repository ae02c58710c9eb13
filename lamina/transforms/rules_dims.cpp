// Rules of operators that name dimensions: a sample's dimension d is d + 1 of the value whose
// samples lie first.
#include <algorithm>

#include "lamina/dispatch/library.h"
#include "lamina/ops/alias.h"
#include "lamina/ops/reshape.h"
#include "lamina/ops/squeeze.h"
#include "lamina/ops/unsqueeze.h"
#include "lamina/transforms/rules.h"

namespace lamina::transforms {

namespace {

// The place of dimension `d` of a sample in the value; 0 where there is no such dimension.
int64_t place(int64_t d, int64_t rank) {
  if (d < -rank || d >= rank) return 0;
  return (d < 0 ? d + rank : d) + 1;
}

bool names_dimension(const std::string& name) {
  return name == "dim" || name == "dim0" || name == "dim1" || name == "dim2" || name == "dims" ||
         name == "dimension";
}

// Shifts every argument that names dimensions of samples of `rank`.
bool shift(Stack& stack, const Parameters& p, int64_t rank) {
  for (size_t i = 0; i < stack.size(); ++i) {
    if (!names_dimension(p.names[i])) continue;
    if (auto* d = std::get_if<int64_t>(&stack[i])) {
      *d = place(*d, rank);
      if (*d == 0) return false;
    } else if (auto* list = std::get_if<std::vector<int64_t>>(&stack[i])) {
      for (int64_t& item : *list) {
        item = place(item, rank);
        if (item == 0) return false;
      }
    } else {
      return false;
    }
  }
  return true;
}

// The operator that reduces dimensions where `op` reduces all; null for one that names them itself.
const char* with_dimensions(std::string_view name) {
  static constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"aten::sum", "aten::sum.dim_IntList"},
      {"aten::mean", "aten::mean.dim"},
      {"aten::prod", "aten::prod.dim_int"},
      {"aten::var", "aten::var.dim"},
      {"aten::std", "aten::std.dim"},
      {"aten::max", "aten::amax"},
      {"aten::min", "aten::amin"},
      {"aten::any", "aten::any.dims"},
      {"aten::all", "aten::all.dims"}};
  for (const auto& [from, to] : kNames)
    if (name == from) return to;
  return nullptr;
}

Tensor as_rows(const Tensor& value) {
  return value.dim() == 2
             ? value
             : ops::reshape(value, Sizes{value.sizes()[0],
                                         value.numel() / std::max<int64_t>(value.sizes()[0], 1)});
}

bool reduce_all(Frame& f, const Tensor& value) {
  const char* name = with_dimensions(f.op.info().name);
  if (!name || value.numel() == 0) return false;
  const Operator& op = operator_named(name);
  const Parameters& p = parameters_of(op);
  Stack arguments;
  for (size_t i = 0; i < p.names.size(); ++i) {
    const Value* given = f.argument(p.names[i]);
    if (p.names[i] == "dim")
      arguments.push_back(p.types[i] == "int" ? Value(int64_t{1}) : Value(std::vector<int64_t>{1}));
    else if (p.names[i] == "keepdim")
      arguments.emplace_back(false);
    else if (given)
      arguments.push_back(i == 0 ? Value(as_rows(value)) : *given);
    else
      return false;
  }
  f.stack = std::move(arguments);
  f.call(op);
  return true;
}

}  // namespace

bool reduction(Frame& f) {
  const Tensor self = *f.tensor(0);
  Tensor value = front(self, f.level);
  const int at = f.parameters.find("dim");
  if (f.writes()) return false;
  if (at < 0) return reduce_all(f, value);
  Stack arguments = f.stack;
  Value& dim = arguments[static_cast<size_t>(at)];
  const int keep_at = f.parameters.find("keepdim");
  int64_t rank = self.dim();
  if (rank == 0) {
    value = ops::unsqueeze(value, 1);
    rank = 1;
    if (keep_at >= 0) arguments[static_cast<size_t>(keep_at)] = false;
  }
  auto* list = std::get_if<std::vector<int64_t>>(&dim);
  const bool takes_list =
      f.parameters.types[static_cast<size_t>(at)].find('[') != std::string::npos;
  bool flat = false;
  if (std::holds_alternative<std::monostate>(dim) || (list && list->empty())) {
    if (takes_list) {
      std::vector<int64_t> all;
      for (int64_t i = 1; i <= rank; ++i) all.push_back(i);
      dim = std::move(all);
    } else {
      if (value.numel() == 0) return false;
      flat = true;
      value = as_rows(value);
      dim = int64_t{1};
    }
  } else if (list) {
    for (int64_t& d : *list) {
      d = place(d, rank);
      if (d == 0) return false;
    }
  } else {
    auto* d = std::get_if<int64_t>(&dim);
    if (!d || place(*d, rank) == 0) return false;
    *d = place(*d, rank);
  }
  const bool keep = keep_at >= 0 && std::get<bool>(arguments[static_cast<size_t>(keep_at)]);
  arguments[0] = value;
  f.stack = std::move(arguments);
  if (flat && keep) {
    f.stack[static_cast<size_t>(keep_at)] = false;
    f.op.call_boxed(f.stack);
    Sizes ones{f.size};
    for (int64_t i = 0; i < rank; ++i) ones.push_back(1);
    f.give(ops::reshape(std::get<Tensor>(f.stack[0]), ones));
  } else {
    f.call();
  }
  return true;
}

bool along_dimension(Frame& f) {
  int64_t rank = -1;
  bool same = true;
  const auto look = [&](const Tensor& t) {
    if (!t.defined()) return;
    same &= rank < 0 || t.dim() == rank;
    rank = t.dim();
  };
  const bool one_index = f.op.info().name == std::string_view("aten::index_select") ||
                         f.op.info().name == std::string_view("aten::index_add") ||
                         f.op.info().name == std::string_view("aten::index_copy") ||
                         f.op.info().name == std::string_view("aten::index_fill");
  const int index = one_index ? f.parameters.find("index") : -1;
  // An index that differs from sample to sample picks other rows for each.
  if (index >= 0 && f.is_batched(f.stack[static_cast<size_t>(index)])) return false;
  for (size_t i = 0; i < f.stack.size(); ++i) {
    if (static_cast<int>(i) == index) continue;
    if (const auto* t = std::get_if<Tensor>(&f.stack[i])) look(*t);
    if (const auto* list = std::get_if<std::vector<Tensor>>(&f.stack[i]))
      for (const Tensor& t : *list) look(t);
  }
  if (!same || rank <= 0) return false;
  Stack arguments = f.stack;
  if (!shift(arguments, f.parameters, rank)) return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (static_cast<int>(i) == index) continue;
    if (auto* t = std::get_if<Tensor>(&arguments[i])) *t = f.with_samples(*t);
    if (auto* list = std::get_if<std::vector<Tensor>>(&arguments[i]))
      for (Tensor& t : *list) t = f.with_samples(t);
  }
  if (f.writes()) {
    // In-place forms write to their first operand.
    const Tensor self = *f.tensor(0);
    f.op.call_boxed(arguments);
    f.stack.clear();
    f.stack.emplace_back(self);
    return true;
  }
  f.stack = std::move(arguments);
  f.call();
  return true;
}

namespace {

bool expand_view(Frame& f, const Tensor& self) {
  auto size = std::get<std::vector<int64_t>>(*f.argument("size"));
  const auto rank = static_cast<int64_t>(size.size());
  if (rank < self.dim()) return false;
  for (int64_t i = 0; i < rank - self.dim(); ++i)
    if (size[static_cast<size_t>(i)] < 0) return false;
  f.stack[0] = f.aligned(self, rank);
  size.insert(size.begin(), f.size);
  *f.argument("size") = std::move(size);
  f.call();
  return true;
}

// The value of a view, and the dimension of samples in it; nothing where the view is left to
// others.
bool view_of_value(Frame& f) {
  const Tensor self = *f.tensor(0);
  std::string_view name = f.op.info().name;
  name.remove_prefix(6);
  const int64_t rank = self.dim();
  const Batched b = *batched(self);
  if (name == "detach" || name == "alias" || name == "_conj" || name == "_neg_view") {
    f.stack[0] = b.value;
    f.call(b.dim);
    return true;
  }
  if (name == "expand") return expand_view(f, self);
  if (name == "view" || name == "_reshape_alias") {
    Value* size = f.argument("size");
    if (!size) {  // of another type
      if (rank == 0) return false;
      f.stack[0] = front(self, f.level);
      f.call();
      return true;
    }
    auto all = std::get<std::vector<int64_t>>(*size);
    // A size that is left open is counted in one sample.
    int64_t known = 1, open = -1;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i] < -1 || (all[i] == -1 && open >= 0)) return false;
      if (all[i] == -1)
        open = static_cast<int64_t>(i);
      else if (__builtin_mul_overflow(known, all[i], &known))
        return false;
    }
    if (open >= 0 && (known == 0 || self.numel() % known != 0)) return false;
    if (open >= 0) all[static_cast<size_t>(open)] = self.numel() / known;
    if (open < 0 && known != self.numel()) return false;
    all.insert(all.begin(), f.size);
    const Tensor value = front(self, f.level);
    f.stack.clear();
    f.stack.emplace_back(value);
    f.stack.emplace_back(std::move(all));
    f.call(operator_named("aten::view"));
    return true;
  }
  if (name == "as_strided") {
    const Tensor value = front(self, f.level);
    auto& size = std::get<std::vector<int64_t>>(f.stack[1]);
    auto& stride = std::get<std::vector<int64_t>>(f.stack[2]);
    if (size.size() != stride.size()) return false;
    size.insert(size.begin(), f.size);
    stride.insert(stride.begin(), value.strides()[0]);
    f.stack[0] = value;
    f.call();
    return true;
  }
  if (name == "permute") {
    auto dims = std::get<std::vector<int64_t>>(f.stack[1]);
    if (static_cast<int64_t>(dims.size()) != rank) return false;
    for (int64_t& d : dims) {
      d = place(d, rank);
      if (d == 0) return false;
    }
    dims.insert(dims.begin(), 0);
    f.stack[0] = front(self, f.level);
    f.stack[1] = std::move(dims);
    f.call();
    return true;
  }
  if (name == "squeeze" && !f.argument("dim")) {
    std::vector<int64_t> ones;
    for (int64_t i = 0; i < rank; ++i)
      if (self.sizes()[i] == 1) ones.push_back(i + 1);
    const Tensor value = front(self, f.level);
    f.give(ones.empty() ? ops::alias(value) : ops::squeeze(value, ones));
    return true;
  }
  if (name == "unsqueeze") {
    const int64_t d = place(std::get<int64_t>(f.stack[1]), rank + 1);
    if (d == 0) return false;
    f.stack[0] = front(self, f.level);
    f.stack[1] = d;
    f.call();
    return true;
  }
  if (name == "t" || name == "view_as_real" || name == "view_as_complex") {
    if (name == "t" && (rank == 0 || rank > 2)) return false;
    if (name == "view_as_complex" && rank == 0) return false;
    if (name == "t" && rank == 2) {
      const Tensor value = front(self, f.level);
      f.stack = {Value(value), Value(int64_t{1}), Value(int64_t{2})};
      f.call(operator_named("aten::transpose.int"));
      return true;
    }
    if (name == "t") {
      f.give(ops::alias(front(self, f.level)));
      return true;
    }
    f.stack[0] = front(self, f.level);
    f.call();
    return true;
  }
  return along_dimension(f);
}

}  // namespace

bool view(Frame& f) {
  if (!f.writes()) return view_of_value(f);
  // In place: the batched tensor looks at another value afterwards.
  std::string name = f.op.full_name();
  const size_t mark =
      name.find('_', name.find('.') == std::string::npos ? name.size() - 1 : name.find('.') - 1);
  if (mark == std::string::npos) return false;
  name.erase(mark, 1);
  const Operator* functional = dispatch::find_operator(name);
  if (!functional) return false;
  const Tensor self = *f.tensor(0);
  Stack arguments = f.stack;
  Frame inner(*functional, arguments, f.level, f.size);
  if (!view_of_value(inner)) return false;
  const Batched b = *batched(std::get<Tensor>(arguments[0]));
  set_value(self, b.value, b.dim);
  f.stack.clear();
  f.stack.emplace_back(self);
  return true;
}

// select_backward and its kin: the sizes that are given are a sample's.
bool slice_gradient(Frame& f) {
  const Tensor grad = *f.tensor(0);
  auto sizes = std::get<std::vector<int64_t>>(f.stack[1]);
  const auto rank = static_cast<int64_t>(sizes.size());
  Stack arguments = f.stack;
  if (rank == 0 || !shift(arguments, f.parameters, rank)) return false;
  sizes.insert(sizes.begin(), f.size);
  arguments[0] = front(grad, f.level);
  arguments[1] = std::move(sizes);
  f.stack = std::move(arguments);
  f.call();
  return true;
}

}  // namespace lamina::transforms
