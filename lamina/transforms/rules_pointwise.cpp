// Rules of operators that work element by element, and of those whose result looks like their
// operand.
#include <algorithm>

#include "lamina/ops/copy.h"
#include "lamina/ops/where.h"
#include "lamina/shape/promotion.h"
#include "lamina/transforms/rules.h"

namespace lamina::transforms {

namespace {

// A sample without dimensions has the dimension of samples in its value. Whether operands then
// promote to another type than the samples alone would.
bool promotes_otherwise(const Frame& f) {
  ResultType samples, values;
  bool zero = false, differ = false;
  std::optional<ScalarType> first;
  for (const Value& v : f.stack) {
    const auto* t = std::get_if<Tensor>(&v);
    if (!t || !t->defined()) continue;
    zero |= t->dim() == 0;
    differ |= first && *first != t->dtype();
    if (!first) first = t->dtype();
  }
  if (!zero || !differ) return false;
  for (const Value& v : f.stack) {
    const auto* t = std::get_if<Tensor>(&v);
    if (!t || !t->defined()) continue;
    const bool of_samples = level_of(*t) == f.level;
    samples.add_type(t->dtype(), t->dim() == 0);
    values.add_type(t->dtype(), t->dim() == 0 && !of_samples);
  }
  return samples.get() != values.get();
}

bool has_one_tensor(const Frame& f) {
  int n = 0;
  for (const Value& v : f.stack) {
    if (std::holds_alternative<std::vector<Tensor>>(v)) return false;
    n += std::holds_alternative<Tensor>(v);
  }
  return n == 1;
}

// Puts back the batched tensors in place of the values that were written.
class Written {
 public:
  explicit Written(const Frame& f) {
    for (size_t i = 0; i < f.stack.size(); ++i)
      if (f.is_written(i) && f.tensor(i)) targets_.push_back(*f.tensor(i));
  }
  void give(Frame& f) {
    f.stack.clear();
    for (Tensor& t : targets_) f.stack.emplace_back(std::move(t));
  }

 private:
  std::vector<Tensor> targets_;
};

}  // namespace

bool direct(Frame& f) {
  if (!has_one_tensor(f)) return false;
  Written written(f);
  int64_t dim = 0;
  for (Value& v : f.stack)
    if (auto* t = std::get_if<Tensor>(&v)) {
      const Batched b = *batched(*t);
      // A memory format speaks of a sample's dimensions.
      for (const Value& other : f.stack)
        if (const auto* format = std::get_if<MemoryFormat>(&other)) {
          if (*format == MemoryFormat::ChannelsLast || *format == MemoryFormat::ChannelsLast3d)
            return false;
        }
      const auto is_contiguous_format = [](const Value& other) {
        const auto* format = std::get_if<MemoryFormat>(&other);
        return format && *format == MemoryFormat::Contiguous;
      };
      const bool first = std::any_of(f.stack.begin(), f.stack.end(), is_contiguous_format);
      dim = first ? 0 : b.dim;
      v = first ? front(*t, f.level) : b.value;
      break;
    }
  if (f.writes()) {
    f.op.call_boxed(f.stack);
    written.give(f);
  } else {
    f.call(dim);
  }
  return true;
}

bool pointwise(Frame& f) {
  if (has_one_tensor(f)) return direct(f);
  int64_t rank = 0;
  for (const Value& v : f.stack) {
    if (std::holds_alternative<std::vector<Tensor>>(v)) return false;
    if (const auto* t = std::get_if<Tensor>(&v)) rank = std::max(rank, t->dim());
  }
  // A target is never broadcast.
  for (size_t i = 0; i < f.stack.size(); ++i)
    if (f.is_written(i) && f.tensor(i) && f.tensor(i)->dim() != rank) return false;
  if (promotes_otherwise(f)) return false;
  Written written(f);
  for (Value& v : f.stack)
    if (auto* t = std::get_if<Tensor>(&v)) *t = f.aligned(*t, rank);
  if (f.writes()) {
    f.op.call_boxed(f.stack);
    written.give(f);
  } else {
    f.call();
  }
  return true;
}

// fill_ and masked_fill_: the value may be a sample without dimensions.
bool fill(Frame& f) {
  const Tensor* value = f.tensor(f.stack.size() - 1);
  if (!value) return pointwise(f);
  const Tensor self = *f.tensor(0);
  if (value->dim() != 0) return false;
  if (!f.is_batched(*value)) {
    // It stays what it is, a tensor without dimensions.
    const Tensor kept = *value;
    int64_t rank = self.dim();
    if (f.stack.size() == 3 && f.tensor(1)->dim() > rank) return false;
    for (Value& v : f.stack)
      if (auto* t = std::get_if<Tensor>(&v); t && !t->is_same(kept)) *t = f.aligned(*t, rank);
    f.op.call_boxed(f.stack);
  } else {
    const Tensor target = front(self, f.level);
    Tensor source = f.aligned(*value, self.dim());
    if (f.stack.size() == 3) {
      if (f.tensor(1)->dim() > self.dim() || self.dtype() != value->dtype()) return false;
      source = ops::where(f.aligned(*f.tensor(1), self.dim()), source, target);
    }
    ops::copy_(target, source, false);
  }
  f.stack.clear();
  f.stack.emplace_back(self);
  return true;
}

// Operators on the last dimensions of one operand: those before them may be as many as one likes.
bool trailing(Frame& f) {
  for (size_t i = 1; i < f.stack.size(); ++i)
    if (f.is_batched(f.stack[i])) return false;
  f.stack[0] = front(*f.tensor(0), f.level);
  f.call();
  return true;
}

// new_zeros and its kin: the size gets the samples in front.
bool sized(Frame& f) {
  auto* size = f.argument("size") ? std::get_if<std::vector<int64_t>>(f.argument("size")) : nullptr;
  if (!size || !f.tensor(0) || !f.is_batched(*f.tensor(0)) || f.writes()) return false;
  if (f.argument("stride")) return false;
  size->insert(size->begin(), f.size);
  f.stack[0] = batched(*f.tensor(0))->value;
  f.call();
  return true;
}

}  // namespace lamina::transforms
