#include "lamina/autograd/forward.h"

#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "lamina/autograd/formulas.h"
#include "lamina/autograd/view.h"
#include "lamina/core/error.h"
#include "lamina/kernels/result.h"
#include "lamina/ops/clone.h"

namespace lamina::autograd::forward {

constinit thread_local uint64_t t_visible = 0;
constinit thread_local int t_num_levels = 0;

namespace {

constexpr int kMaxLevels = 64;

// Who has tangents of which level. Never destroyed: tensors may die after everything else.
struct Registry {
  std::mutex mutex;
  uint64_t last = 0;
  std::unordered_map<uint64_t, std::unordered_set<Tangents*>> holders;
};
Registry& registry() {
  static Registry* r = new Registry;
  return *r;
}

struct Levels {
  std::vector<uint64_t> stack;
  uint64_t suspended = 0;  // the visible levels while forward mode is off
  bool enabled = true;
  ~Levels();
};
thread_local Levels t_levels;

// Takes the tangents of a level from all tensors. They die after the lock is given back: their own
// tangents ask for it.
void end_level(uint64_t level) {
  std::vector<Tensor> dying;
  Registry& r = registry();
  const std::lock_guard<std::mutex> lock(r.mutex);
  const auto at = r.holders.find(level);
  if (at == r.holders.end()) return;
  for (Tangents* holder : at->second) {
    std::erase_if(holder->entries, [&](Tangent& t) {
      if (t.level != level) return false;
      dying.push_back(std::move(t.value));
      return true;
    });
  }
  r.holders.erase(at);
  // `dying` was made before the lock, so it is destroyed after it.
}

Levels::~Levels() {
  for (const uint64_t level : stack) end_level(level);
}

uint64_t number_of(int level) { return t_levels.stack[static_cast<size_t>(level)]; }

// Place of a level in this thread's stack; -1 where it is not there.
int place_of(uint64_t number) {
  const auto& stack = t_levels.stack;
  for (size_t i = stack.size(); i-- > 0;)
    if (stack[i] == number) return static_cast<int>(i);
  return -1;
}

void check_level(int level) {
  LAMINA_CHECK(level >= 0 && level < num_levels(), "forward_ad: there is no dual level ", level,
               "; got ", num_levels(),
               " levels on this thread; expected one that was entered with "
               "dual_level()");
}

// The tensor whose tangent a view's tangent is a window of.
Tensor base_of(const Tensor& t) { return Tensor::share(t.impl()->base()); }

Tangents* holder_of(const Tensor& t) {
  const Meta* m = t.defined() ? meta(t) : nullptr;
  return m ? m->tangents.get() : nullptr;
}
Tangents& require_holder(const Tensor& t) {
  Meta& m = require_meta(t);
  if (!m.tangents) m.tangents = IntrusivePtr<Tangents>::make();
  return *m.tangents;
}

Tangent* find(Tangents* holder, uint64_t level) {
  if (!holder) return nullptr;
  for (Tangent& t : holder->entries)
    if (t.level == level) return &t;
  return nullptr;
}
// A copy, so that nothing is read without the lock.
std::optional<Tangent> entry_of(const Tensor& t, uint64_t level) {
  Tangents* holder = holder_of(t);
  if (!holder) return std::nullopt;
  const std::lock_guard<std::mutex> lock(registry().mutex);
  const Tangent* found = find(holder, level);
  return found ? std::optional<Tangent>(*found) : std::nullopt;
}
void set_entry(const Tensor& t, Tangent entry) {
  Tangents& holder = require_holder(t);
  Tensor old;  // dies after the lock
  Registry& r = registry();
  const std::lock_guard<std::mutex> lock(r.mutex);
  if (Tangent* found = find(&holder, entry.level)) {
    old = std::move(found->value);
    *found = std::move(entry);
    return;
  }
  r.holders[entry.level].insert(&holder);
  holder.entries.push_back(std::move(entry));
}
void erase_entry(const Tensor& t, uint64_t level) {
  Tangents* holder = holder_of(t);
  if (!holder) return;
  Tensor old;
  Registry& r = registry();
  const std::lock_guard<std::mutex> lock(r.mutex);
  std::erase_if(holder->entries, [&](Tangent& entry) {
    if (entry.level != level) return false;
    old = std::move(entry.value);
    return true;
  });
  r.holders[level].erase(holder);
}

// ---- layout -------------------------------------------------------------------------------------

constexpr KeySet kMarks = KeySet::of(DispatchKey::Conjugate, DispatchKey::Negative);

KeySet marks_of(const Tensor& t) { return t.keys() & kMarks; }
bool has_mark(const Tensor& t) { return !marks_of(t).empty(); }

bool lies_as(const Tensor& value, const Tensor& t) {
  if (value.dtype() != t.dtype() || !(marks_of(value) == marks_of(t))) return false;
  for (int64_t i = 0; i < t.dim(); ++i)
    if (t.sizes()[i] > 1 && value.strides()[i] != t.strides()[i]) return false;
  return true;
}
bool is_alone(const Tensor& value) {
  return value.impl()->use_count() == 1 && value.storage() && value.storage()->use_count() == 1 &&
         !has_mark(value);
}

// Zeros, or room for a value, whose bytes lie as those of `t`; contiguous where `t` overlaps
// itself.
Tensor room_for(const Tensor& t) {
  if (t.is_contiguous() || t.numel() == 0 || internal_overlap(t) != Overlap::No)
    return formulas::zeros_of(t, t.sizes());
  int64_t low = 0, high = 0;
  for (int64_t i = 0; i < t.dim(); ++i) {
    const int64_t reach = (t.sizes()[i] - 1) * t.strides()[i];
    (reach < 0 ? low : high) += reach;
  }
  const Tensor flat = formulas::zeros_of(t, {high - low + 1});
  Tensor out = alias_window(flat, t.sizes(), t.strides(), -low);
  out.impl()->set_view(false);  // it is the only one on these bytes
  return out;
}

// The tangent of `t` as a tensor that views of it can be windows of.
Tangent exclusive_entry(int level, const Tensor& t, Tangent entry) {
  const bool overlaps = internal_overlap(t) != Overlap::No;
  if (entry.exclusive && (lies_as(entry.value, t) || overlaps)) {
    if (!entry.viewed) {
      entry.viewed = true;
      set_entry(t, entry);
    }
    return entry;
  }
  const Hide hide(level);
  if (overlaps) {
    entry.value = ops::contiguous(entry.value);
  } else {
    Tensor room = room_for(t);
    if (t.keys().has(DispatchKey::Conjugate)) room = ops::_conj(room);
    if (t.keys().has(DispatchKey::Negative)) room = ops::_neg_view(room);
    entry.value = ops::copy_(room, entry.value);
  }
  entry.exclusive = entry.viewed = true;
  set_entry(t, entry);
  return entry;
}

// The entry of `t`, or the one that it has as a view of a tensor with a tangent.
std::optional<Tangent> seek(int level, const Tensor& t) {
  const uint64_t number = number_of(level);
  if (std::optional<Tangent> own = entry_of(t, number)) {
    if (!own->value.defined()) return std::nullopt;
    return own;
  }
  const Tensor base = base_of(t);
  if (!base.defined()) return std::nullopt;
  std::optional<Tangent> of_base = entry_of(base, number);
  if (!of_base || !of_base->value.defined()) return std::nullopt;
  *of_base = exclusive_entry(level, base, std::move(*of_base));
  const Hide hide(level);
  Tangent entry{number, replay(t, of_base->value), true, true, false};
  set_entry(t, entry);
  return entry;
}

// Whether a write to the tangent of `t` must reach the base's tangent.
bool tells_base(const std::optional<Tangent>& entry, const Tensor& t) {
  return !(entry && entry->own_root) && base_of(t).defined();
}

}  // namespace

Tangents::~Tangents() {
  if (entries.empty()) return;
  Registry& r = registry();
  const std::lock_guard<std::mutex> lock(r.mutex);
  for (const Tangent& t : entries)
    if (const auto at = r.holders.find(t.level); at != r.holders.end()) at->second.erase(this);
}

// ---- levels -------------------------------------------------------------------------------------

int enter_level() {
  Levels& l = t_levels;
  LAMINA_CHECK(num_levels() < kMaxLevels,
               "dual_level: too many nested levels of forward mode; got ", num_levels() + 1,
               "; expected at most ", kMaxLevels);
  const int index = num_levels();
  {
    Registry& r = registry();
    const std::lock_guard<std::mutex> lock(r.mutex);
    l.stack.push_back(++r.last);
  }
  ++t_num_levels;
  (l.enabled ? t_visible : l.suspended) |= uint64_t{1} << index;
  return index;
}

void leave_level(int level) {
  Levels& l = t_levels;
  LAMINA_CHECK(level >= 0 && level == num_levels() - 1,
               "dual_level: Trying to exit a forward AD level that was not the last one that was "
               "created. This is not supported; got level ",
               level, "; the last one is ", num_levels() - 1);
  const uint64_t number = l.stack.back();
  l.stack.pop_back();
  --t_num_levels;
  const uint64_t bit = uint64_t{1} << level;
  t_visible &= ~bit;
  l.suspended &= ~bit;
  end_level(number);
}

bool enabled() { return t_levels.enabled; }
void set_enabled(bool v) {
  Levels& l = t_levels;
  if (l.enabled == v) return;
  l.enabled = v;
  std::swap(t_visible, l.suspended);
}

Tensor make_dual(const Tensor& primal, const Tensor& tangent, int level) {
  check_level(level);
  LAMINA_CHECK(is_differentiable(primal.dtype()) && is_differentiable(tangent.dtype()),
               "make_dual: Expected both tensor and its forward grad to be floating point or "
               "complex; got ",
               primal, " and ", tangent);
  LAMINA_CHECK(primal.sizes() == tangent.sizes(),
               "make_dual: Trying to set a forward gradient that has a different size than that of "
               "the original Tensor, this is not supported. Tensor is of size ",
               primal.sizes(), " while the given forward gradient is of size ", tangent.sizes());
  LAMINA_CHECK(primal.is_complex() || !tangent.is_complex(),
               "make_dual: a real tensor has a real tangent; got ", primal, " and ", tangent);
  LAMINA_CHECK(primal.device() == tangent.device(),
               "make_dual: the tangent lies on the device of its tensor; got ", primal, " and ",
               tangent);
  LAMINA_CHECK(!seek(level, primal),
               "make_dual: Making a dual Tensor based on a Tensor that already has a forward "
               "gradient at the same level ",
               level, " is not supported.");
  LAMINA_CHECK(!seek(level, tangent),
               "make_dual: Setting a forward grad that itself has a forward gradient at the same "
               "level ",
               level, " is not supported.");
  const Hide hide(level);
  // Elements that share an address may have tangents that differ: they get bytes of their own.
  Tensor dual = internal_overlap(primal) == Overlap::No
                    ? ops::alias(primal)
                    : ops::clone(primal, MemoryFormat::Contiguous);
  set_entry(dual,
            {number_of(level), formulas::fit_dtype(tangent, primal.dtype()), false, false, true});
  return dual;
}

Dual unpack_dual(const Tensor& dual, int level) {
  check_level(level);
  const std::optional<Tangent> entry = seek(level, dual);
  if (!entry) return {dual, {}};
  const Hide hide(level);
  Tensor primal = ops::alias(dual);
  set_entry(primal, {number_of(level), {}, false, false, true});
  return {primal, entry->value};
}

// ---- tangents -----------------------------------------------------------------------------------

namespace {
// Under the lock: the highest visible level among the entries, and which levels are settled there.
int highest_in(Tangents* holder, uint64_t& settled) {
  int best = -1;
  if (!holder) return best;
  for (const Tangent& t : holder->entries) {
    const int place = place_of(t.level);
    if (place < 0 || settled >> place & 1) continue;
    settled |= uint64_t{1} << place;
    if (t_visible >> place & 1 && t.value.defined() && place > best) best = place;
  }
  return best;
}
}  // namespace

int highest_level(const Tensor& t) {
  if (!t.defined() || inference_enabled()) return -1;
  Tangents* own = holder_of(t);
  const Tensor base = base_of(t);
  Tangents* of_base = base.defined() ? holder_of(base) : nullptr;
  if (!own && !of_base) return -1;
  const std::lock_guard<std::mutex> lock(registry().mutex);
  uint64_t settled = 0;
  const int first = highest_in(own, settled), second = highest_in(of_base, settled);
  return std::max(first, second);
}

int highest_level(TensorList list) {
  int best = -1;
  for (const Tensor& t : list) best = std::max(best, highest_level(t));
  return best;
}

bool has_tangent(int level, TensorList list) {
  for (const Tensor& t : list)
    if (t.defined() && seek(level, t)) return true;
  return false;
}

Tensor tangent(int level, const Tensor& t) {
  if (!t.defined()) return {};
  std::optional<Tangent> entry = seek(level, t);
  return entry ? std::move(entry->value) : Tensor();
}

Tensor tangent_before_write(int level, const Tensor& self) {
  if (!self.defined()) return {};
  std::optional<Tangent> entry = seek(level, self);
  if (!entry) return {};
  return entry->viewed && grad_enabled() ? ops::clone(entry->value) : std::move(entry->value);
}

std::vector<Tensor> tangents_before_write(int level, TensorList list) {
  std::vector<Tensor> out;
  for (const Tensor& t : list) {
    Tensor value = tangent_before_write(level, t);
    if (!value.defined() && t.defined() && is_differentiable(t.dtype())) value = ops::zeros_like(t);
    out.push_back(std::move(value));
  }
  return out;
}

void set_custom_tangents(int level, TensorList inputs, TensorList outputs, TensorList tangents) {
  LAMINA_CHECK(tangents.size() == outputs.size(),
               "jvp: one tangent is expected for each result; got ", tangents.size(), "; expected ",
               outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor &out = outputs[i], &value = tangents[i];
    if (!out.defined() || !is_differentiable(out.dtype())) continue;
    LAMINA_CHECK(!value.defined() || value.sizes() == out.sizes(),
                 "jvp: the tangent of a result has its sizes; got ", value, "; expected ", out);
    bool written = false;
    for (const Tensor& t : inputs) written |= t.is_same(out);
    if (written)
      write_tangent(level, out, value);
    else if (out.impl()->base())
      set_view_tangent(level, out, value);
    else
      set_tangent(level, out, value);
  }
}

std::vector<Tensor> tangents(int level, TensorList list) {
  std::vector<Tensor> out;
  for (const Tensor& t : list) {
    Tensor value = tangent(level, t);
    out.push_back(value.defined() ? std::move(value) : ops::zeros_like(t));
  }
  return out;
}

void set_tangent(int level, const Tensor& t, Tensor value) {
  if (!value.defined() || !is_differentiable(t.dtype())) return;
  // What somebody else holds may be written later, here or there.
  if (!is_alone(value)) value = ops::clone(value);
  set_entry(t, {number_of(level), std::move(value), true, false, false});
}

Tensor tangent_for_view(int level, const Tensor& t) {
  std::optional<Tangent> entry = seek(level, t);
  return entry ? exclusive_entry(level, t, std::move(*entry)).value : Tensor();
}

void set_view_tangent(int level, const Tensor& view, Tensor value) {
  if (value.defined()) set_entry(view, {number_of(level), std::move(value), true, true, false});
}

void replace_window(int level, const Tensor& self, Tensor value) {
  if (!value.defined()) return;
  const std::optional<Tangent> entry = seek(level, self);
  set_entry(self, {number_of(level), std::move(value), true, true, entry && entry->own_root});
}

void write_tangent(int level, const Tensor& self, const Tensor& value) {
  if (!is_differentiable(self.dtype())) return;
  const uint64_t number = number_of(level);
  std::optional<Tangent> entry = seek(level, self);
  if (entry && value.defined() && entry->value.is_same(value)) return;
  const Hide hide(level);
  if (!entry && value.defined() && tells_base(entry, self)) {
    // The base had no tangent: it gets a zero one, of which this is a window.
    const Tensor base = base_of(self);
    set_entry(base, {number, room_for(base), true, true, false});
    erase_entry(self, number);
    entry = seek(level, self);
  }
  if (entry && (tells_base(entry, self) || entry->viewed)) {
    *entry = exclusive_entry(level, self, std::move(*entry));
    if (value.defined())
      ops::copy_(entry->value, value);
    else
      ops::zero_(entry->value);
    return;
  }
  const bool own_root = entry && entry->own_root;
  if (!value.defined()) {
    if (!entry) return;
    if (own_root)  // the base's tangent must not shine through
      set_entry(self, {number, {}, false, false, true});
    else
      erase_entry(self, number);
    return;
  }
  Tensor kept = value;
  if (kept.impl()->use_count() > 2 || kept.storage()->use_count() > 1 || has_mark(kept))
    kept = ops::clone(kept);
  set_entry(self, {number, std::move(kept), true, false, own_root});
}

void drop_tangents(const Tensor& self) {
  for (int level = num_levels() - 1; level >= 0; --level)
    if (t_visible >> level & 1) write_tangent(level, self, {});
}

void share_tangents_now(const Tensor& t, const Tensor& alias) {
  if (!is_differentiable(t.dtype())) return;
  require_holder(t);
  require_meta(alias).tangents = meta(t)->tangents;
}

void copy_tangents_now(const Tensor& t, const Tensor& copy) {
  for (int level = num_levels() - 1; level >= 0; --level) {
    const Tensor value = tangent(level, t);
    if (!value.defined()) continue;
    const Hide hide(level);
    set_entry(copy, {number_of(level), ops::clone(value), true, false, false});
  }
}

void raise_out(const char* op) {
  raise(ErrorKind::NotImplemented,
        str(op, ": Trying to use forward AD with ", op,
            "_out that does not support it because it is an out= function; call it without out="));
}

void raise_missing(const char* op, const char* reason) {
  raise(ErrorKind::NotImplemented,
        str(op, ": Trying to use forward AD with ", op, " that does not support it: ", reason));
}

// ---- sums ---------------------------------------------------------------------------------------

Sum::Sum(const Tensor& result)
    : sizes_(std::span<const int64_t>(result.sizes())),
      dtype_(result.dtype()),
      wanted_(is_differentiable(result.dtype())) {}

Tensor Sum::cotangent(const Tensor& tangent) const {
  Tensor t = tangent.dtype() == dtype_ ? tangent : formulas::fit_dtype(tangent, dtype_);
  if (t.sizes() != IntList(sizes_)) t = ops::expand(t, sizes_);
  return formulas::conj_of(t);
}

void Sum::add(const Tensor& part) {
  if (!part.defined()) return;
  Tensor t = formulas::fit_dtype(part, dtype_);
  if (t.sizes() != IntList(sizes_))
    t = t.dim() > static_cast<int64_t>(sizes_.size()) ? ops::reshape(t, sizes_)
                                                      : ops::expand(t, sizes_);
  value_ = value_.defined() ? ops::add(value_, t) : t;
}

void Sum::add_conj(const Tensor& part) {
  if (part.defined()) add(formulas::conj_of(part));
}

}  // namespace lamina::autograd::forward
