#include "lamina/transforms/batched.h"

#include <algorithm>

#include "lamina/dispatch/local_state.h"
#include "lamina/ops/expand.h"
#include "lamina/ops/permute.h"
#include "lamina/ops/unsqueeze.h"
#include "lamina/transforms/rules.h"

namespace lamina::transforms {

namespace {

thread_local std::vector<Level> t_levels;
thread_local int64_t t_next_level = 1;

void drop(void*, size_t, void* context) noexcept { delete static_cast<Batched*>(context); }

void set_sizes(const Tensor& t, const Tensor& value, int64_t dim) {
  Sizes sizes, strides;
  for (int64_t i = 0; i < value.dim(); ++i)
    if (i != dim) {
      sizes.push_back(value.sizes()[i]);
      strides.push_back(value.strides()[i]);
    }
  t.impl()->set_window(sizes, strides, value.storage_offset());
  // By it requires_grad() of the batched tensor asks the value.
  t.impl()->set_base(value.impl(), ViewOrigin::Recorded);
}

IntrusivePtr<Storage> storage_for(const Tensor& value, int64_t dim, int64_t level) {
  return Storage::make(nullptr, 0, value.device(), &drop, new Batched{value, dim, level});
}

}  // namespace

const Batched* batched(const Tensor& t) {
  if (!t.defined() || !is_batched(t)) return nullptr;
  const Storage* s = t.storage();
  return s && s->deleter() == &drop ? static_cast<const Batched*>(s->context()) : nullptr;
}

Tensor wrap(const Tensor& value, int64_t dim, int64_t level) {
  LAMINA_CHECK(value.defined() && dim >= 0 && dim < value.dim() && level > level_of(value),
               "vmap: no samples in dimension ", dim, " of the value");
  Tensor t =
      Tensor::adopt(TensorImpl::make(value.dtype(), value.device(), DispatchKey::FuncTorchBatched,
                                     storage_for(value, dim, level)));
  set_sizes(t, value, dim);
  return t;
}

void set_value(const Tensor& t, const Tensor& value, int64_t dim) {
  t.impl()->set_storage(storage_for(value, dim, batched(t)->level));
  set_sizes(t, value, dim);
}

int64_t level_of(const Tensor& t) {
  const Batched* b = batched(t);
  return b ? b->level : -1;
}
int64_t level_of(TensorList list) {
  int64_t level = -1;
  for (const Tensor& t : list) level = std::max(level, level_of(t));
  return level;
}

const Tensor& innermost(const Tensor& t) {
  const Batched* b = batched(t);
  return b ? innermost(b->value) : t;
}

void raise_item(std::string_view what) {
  throw BatchingError(
      str("vmap: It looks like you're ", what,
          ". A tensor inside vmap stands for all samples at once and has no single value; got a "
          "batched tensor; expected code that does not depend on values, e.g. torch.where in place "
          "of a branch, or a computation outside of vmap"));
}

const std::vector<Level>& levels() { return t_levels; }
int64_t next_level_number() { return t_next_level++; }

int64_t enter_vmap(int64_t size, Randomness randomness) {
  serve_random_operators();
  const int64_t number = next_level_number();
  t_levels.push_back({number, size, randomness});
  dispatch::t_local.included = dispatch::t_local.included | DispatchKey::FuncTorchVmapMode;
  return number;
}
namespace {
void include_mode() {
  KeySet& included = dispatch::t_local.included;
  included = t_levels.empty() ? included - DispatchKey::FuncTorchVmapMode
                              : included | DispatchKey::FuncTorchVmapMode;
}
}  // namespace
void leave_vmap() {
  LAMINA_CHECK(!t_levels.empty(), "vmap: no level is entered on this thread");
  t_levels.pop_back();
  include_mode();
}

std::vector<Level> take_levels(int64_t level) {
  const auto first = std::find_if(t_levels.begin(), t_levels.end(),
                                  [&](const Level& l) { return l.number >= level; });
  std::vector<Level> taken(first, t_levels.end());
  t_levels.erase(first, t_levels.end());
  include_mode();
  return taken;
}
void put_levels(const std::vector<Level>& taken) {
  t_levels.insert(t_levels.end(), taken.begin(), taken.end());
  include_mode();
}

namespace {
// Dimension `from` in the place of dimension `to`, the others in their order.
Tensor moved(const Tensor& t, int64_t from, int64_t to) {
  if (from == to) return t;
  Sizes order;
  for (int64_t i = 0; i < t.dim(); ++i)
    if (i != from) order.push_back(i);
  Sizes all;
  for (int64_t i = 0, k = 0; i < t.dim(); ++i)
    all.push_back(i == to ? from : order[static_cast<size_t>(k++)]);
  return ops::permute(t, all);
}

Tensor repeated(const Tensor& t, int64_t size) {
  Sizes sizes{size};
  for (const int64_t s : t.sizes()) sizes.push_back(s);
  return ops::expand(ops::unsqueeze(t, 0), sizes);
}
}  // namespace

Tensor front(const Tensor& t, int64_t level) {
  const Batched* b = batched(t);
  LAMINA_CHECK(b && b->level == level, "vmap: a tensor is not batched at level ", level);
  return moved(b->value, b->dim, 0);
}

Tensor taken_out(const Tensor& t, int64_t level, int64_t size) {
  const Batched* b = batched(t);
  if (!b || b->level < level) return repeated(t, size);
  if (b->level == level) return moved(b->value, b->dim, 0);
  return wrap(taken_out(b->value, level, size), b->dim + 1, b->level);
}

Tensor put_under(const Tensor& t, int64_t dim, int64_t level) {
  const Batched* b = batched(t);
  if (!b || b->level < level) return wrap(t, dim, level);
  LAMINA_CHECK(b->level != level, "vmap: a tensor is batched at level ", level, " already");
  const int64_t below = dim + (dim >= b->dim);
  return wrap(put_under(b->value, below, level), b->dim - (b->dim > below), b->level);
}

Tensor unbatched(const Tensor& t, int64_t dim, int64_t level, int64_t size) {
  return moved(taken_out(t, level, size), 0, dim);
}

std::vector<Level> levels_in(TensorList tensors) {
  std::vector<Level> found;
  for (const Tensor& t : tensors)
    for (const Batched* b = batched(t); b; b = batched(b->value)) {
      const auto same = [&](const Level& l) { return l.number == b->level; };
      if (std::none_of(found.begin(), found.end(), same))
        found.push_back({b->level, b->value.sizes()[b->dim], Randomness::Error});
    }
  std::sort(found.begin(), found.end(),
            [](const Level& a, const Level& b) { return a.number < b.number; });
  return found;
}

Tensor flattened(const Tensor& t, const std::vector<Level>& levels) {
  Tensor flat = t;
  for (size_t i = levels.size(); i-- > 0;) flat = taken_out(flat, levels[i].number, levels[i].size);
  return flat;
}

Tensor rewrapped(const Tensor& flat, const std::vector<Level>& levels) {
  Tensor t = flat;
  for (const Level& l : levels) t = put_under(t, 0, l.number);
  return t;
}

}  // namespace lamina::transforms
