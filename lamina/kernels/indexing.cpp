// Kernels that read and write by index, and joining.
#include <cstring>

#include "lamina/core/error.h"
#include "lamina/cpu/index_kernels.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"
#include "lamina/shape/broadcast.h"
#include "lamina/shape/promotion.h"
#include "lamina/tile/tile.h"

namespace lamina::kernels {

namespace {

cpu::Strided strided(const Tensor& t) { return {t.data(), t.sizes(), t.strides()}; }
cpu::ConstStrided source(const Tensor& t) { return {t.data(), t.sizes(), t.strides()}; }

Tensor as_int64(const Tensor& index, const char* op) {
  LAMINA_CHECK(index.dtype() == ScalarType::Int64 || index.dtype() == ScalarType::Int32, op,
               ": Expected dtype int32/int64 for index; got ", index);
  return converted(index, ScalarType::Int64);
}
// gather and scatter take int64 only, as the peer.
Tensor index_operand(const Tensor& index, const char* op) {
  LAMINA_CHECK(index.dtype() == ScalarType::Int64 || index.dtype() == ScalarType::Int32 ||
                   index.numel() == 0,
               op, ": Expected dtype int64 for index; got ", index);
  return at_least_1d(converted(index, ScalarType::Int64));
}
int dim_of(const Tensor& self, int64_t dim, const char* op) {
  return static_cast<int>(wrap_dim(dim, self.dim(), op));
}

void check_same_type(const Tensor& self, const Tensor& src, const char* op) {
  LAMINA_CHECK(self.dtype() == src.dtype(), op,
               ": Expected self.dtype to be equal to src.dtype; got ", self, " and ", src);
}

}  // namespace

namespace {
// Few bytes, all row-major and of the result's type: rows are copied as they stand.
bool cat_small(const Tensor& result, TensorList tensors, int64_t dim) {
  constexpr size_t kSmall = 16384;
  if (!result.is_contiguous() || result.nbytes() > kSmall) return false;
  for (const Tensor& t : tensors)
    if (t.dtype() != result.dtype() || !t.is_contiguous() || t.is_meta()) return false;
  int64_t outer = 1;
  for (int64_t i = 0; i < dim; ++i) outer *= result.sizes()[i];
  auto* to = static_cast<char*>(result.data());
  for (int64_t row = 0; row < outer; ++row)
    for (const Tensor& t : tensors) {
      if (t.numel() == 0) continue;
      const size_t bytes = t.nbytes() / static_cast<size_t>(outer);
      std::memcpy(to, static_cast<const char*>(t.data()) + row * bytes, bytes);
      to += bytes;
    }
  return true;
}
}  // namespace

void cat(const Tensor& result, TensorList tensors, int64_t dim) {
  if (result.numel() == 0 || cat_small(result, tensors, wrap_dim(dim, result.dim(), "cat"))) return;
  SmallVector<cpu::ConstStrided, 8> inputs;
  std::vector<Tensor> kept;  // converted operands live until the copy is done
  const int64_t rank = result.dim();
  for (const Tensor& t : tensors) {
    if (t.dim() == 1 && t.numel() == 0 && rank != 1) continue;  // an empty vector joins anything
    if (t.numel() == 0) continue;
    if (t.dtype() == result.dtype()) {
      inputs.push_back(source(t));
      continue;
    }
    kept.push_back(converted(t, result.dtype()));
    inputs.push_back(source(kept.back()));
  }
  if (inputs.empty()) return;
  cpu::cat(strided(result), {inputs.data(), inputs.size()},
           static_cast<int>(wrap_dim(dim, rank, "cat")), item_size(result.dtype()));
}

void gather(const Tensor& result, const Tensor& self, int64_t dim, const Tensor& index, bool) {
  if (index.numel() == 0) return;
  const Tensor i = index_operand(index, "gather"), out = at_least_1d(result),
               in = at_least_1d(self);
  cpu::gather(strided(out), source(in), dim_of(self, dim, "gather"), source(i),
              item_size(self.dtype()));
}

void scatter_src(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_same_type(self, src, "scatter");
  if (index.numel() == 0) return;
  const Tensor i = index_operand(index, "scatter"), out = at_least_1d(self), in = at_least_1d(src);
  cpu::scatter(strided(out), dim_of(self, dim, "scatter"), source(i), source(in),
               item_size(self.dtype()));
}

void scatter_value(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  if (index.numel() == 0) return;
  const Tensor i = index_operand(index, "scatter"), out = at_least_1d(self);
  cpu::scatter_value(strided(out), dim_of(self, dim, "scatter"), source(i), value, self.dtype());
}

void scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_same_type(self, src, "scatter_add");
  if (index.numel() == 0) return;
  const Tensor i = index_operand(index, "scatter_add"), out = at_least_1d(self),
               in = at_least_1d(src);
  cpu::scatter_add(strided(out), dim_of(self, dim, "scatter_add"), source(i), source(in),
                   self.dtype());
}

namespace {
cpu::Reduction named_reduction(std::string_view reduce) {
  if (reduce == "sum") return cpu::Reduction::Sum;
  if (reduce == "prod") return cpu::Reduction::Prod;
  if (reduce == "mean") return cpu::Reduction::Mean;
  if (reduce == "amax") return cpu::Reduction::Amax;
  LAMINA_CHECK(reduce == "amin",
               "scatter_reduce: reduce argument must be either sum, prod, mean, amax or amin, got ",
               reduce);
  return cpu::Reduction::Amin;
}
}  // namespace

void scatter_reduce_two(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                        std::string_view reduce, bool include_self) {
  const cpu::Reduction r = named_reduction(reduce);
  check_same_type(self, src, "scatter_reduce");
  if (index.numel() == 0) return;
  // Sums and means of short types are taken in float32, and rounded once.
  const bool wide = is_reduced_floating(self.dtype());
  const Tensor work = wide ? converted(self, ScalarType::Float32) : self;
  const Tensor i = index_operand(index, "scatter_reduce"), out = at_least_1d(work),
               in = at_least_1d(wide ? converted(src, ScalarType::Float32) : src);
  cpu::scatter_reduce(strided(out), dim_of(self, dim, "scatter_reduce"), source(i), source(in),
                      work.dtype(), r, include_self);
  if (wide) copy_values(self, work);
}

namespace {
cpu::Reduction old_reduction(std::string_view reduce) {
  LAMINA_CHECK(reduce == "add" || reduce == "multiply",
               "scatter: reduce argument must be either add or multiply; got '", reduce, "'");
  return reduce == "add" ? cpu::Reduction::Sum : cpu::Reduction::Prod;
}
}  // namespace

void scatter_old_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                        std::string_view reduce) {
  const cpu::Reduction r = old_reduction(reduce);
  check_same_type(self, src, "scatter");
  if (index.numel() == 0) return;
  const Tensor i = index_operand(index, "scatter"), out = at_least_1d(self), in = at_least_1d(src);
  cpu::scatter_reduce(strided(out), dim_of(self, dim, "scatter"), source(i), source(in),
                      self.dtype(), r);
}

void scatter_old_value_reduce(const Tensor& self, int64_t dim, const Tensor& index,
                              const Scalar& value, std::string_view reduce) {
  Tensor src = empty_contiguous(index.sizes(), self.dtype(), self.device());
  kernels::fill(src, value);
  scatter_old_reduce(self, dim, index, src, reduce);
}

void index_select(const Tensor& result, const Tensor& self, int64_t dim, const Tensor& index) {
  const Tensor i = at_least_1d(as_int64(index, "index_select"));
  const Tensor out = at_least_1d(result), in = at_least_1d(self);
  cpu::index_select(strided(out), source(in), dim_of(self, dim, "index_select"), source(i),
                    item_size(self.dtype()));
}

namespace {
// source has self's sizes, but for `dim`, where it has index's.
void check_slices(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                  const char* op, ErrorKind kind) {
  LAMINA_CHECK_INDEX(index.dim() <= 1, op, ": Index is supposed to be a vector; got ", index);
  check_same_type(self, src, op);
  const int64_t d = wrap_dim(dim, self.dim(), op);
  if (self.dim() == 0) {
    LAMINA_CHECK(src.numel() <= 1 && src.numel() == index.numel() && src.dim() <= 1, op,
                 ": a tensor without dimensions takes one element for each index; got ", src,
                 " for index ", index);
    return;
  }
  Sizes expected{std::span<const int64_t>(self.sizes())};
  expected[d] = index.numel();
  const Tensor s = at_least_1d(src);
  LAMINA_CHECK_KIND(kind, s.sizes() == IntList(expected), op, ": source does not fit; got ", src,
                    "; expected sizes ", expected);
}
}  // namespace

void index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
               const Scalar& alpha) {
  check_slices(self, dim, index, src, "index_add_", ErrorKind::Runtime);
  const Tensor i = at_least_1d(as_int64(index, "index_add_")), out = at_least_1d(self),
               in = at_least_1d(src);
  cpu::index_add(strided(out), dim_of(self, dim, "index_add_"), source(i), source(in), alpha,
                 self.dtype());
}

void index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_slices(self, dim, index, src, "index_copy_", ErrorKind::Index);
  const Tensor i = at_least_1d(as_int64(index, "index_copy_")), out = at_least_1d(self),
               in = at_least_1d(src);
  cpu::index_copy(strided(out), dim_of(self, dim, "index_copy_"), source(i), source(in),
                  item_size(self.dtype()));
}

void index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  LAMINA_CHECK_INDEX(index.dim() <= 1, "index_fill_: Index has to be a vector/scalar; got ", index);
  const Tensor i = at_least_1d(as_int64(index, "index_fill_")), out = at_least_1d(self);
  cpu::index_fill(strided(out), dim_of(self, dim, "index_fill_"), source(i), value, self.dtype());
}

namespace {
void check_mask(const Tensor& mask, const char* op) {
  LAMINA_CHECK(mask.dtype() == ScalarType::Bool, op,
               ": only supports boolean masks, but got mask with dtype ", mask.dtype());
}
Tensor expanded_mask(const Tensor& self, const Tensor& mask, const char* op) {
  check_mask(mask, op);
  LAMINA_CHECK(is_expandable(mask.sizes(), self.sizes()), op,
               ": mask does not broadcast to self; got ", mask, " and ", self);
  return kernels::expand(mask, self.sizes(), false);
}
}  // namespace

void masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value) {
  const Tensor m = expanded_mask(self, mask, "masked_fill");
  LAMINA_CHECK(!value.is_complex() || self.is_complex(),
               "masked_fill: value cannot be converted to type ", legacy_name(self.dtype()),
               " without overflow");
  LAMINA_CHECK(!value.is_floating() || !is_integral(self.dtype(), true),
               "masked_fill: value cannot be converted to type ", legacy_name(self.dtype()),
               " without overflow; got a floating number");
  LAMINA_CHECK(number_fits(value, self.dtype()), "masked_fill: value cannot be converted to type ",
               legacy_name(self.dtype()), " without overflow");
  cpu::masked_fill(strided(self), source(m), value, self.dtype());
}

void masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value) {
  LAMINA_CHECK(
      value.dim() == 0,
      "masked_fill: masked_fill only supports a 0-dimensional value tensor, but got tensor with ",
      value.dim(), " dimension(s).");
  const Scalar number = tile::load_scalar(value.data(), value.dtype());
  masked_fill(self, mask, number);
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  check_mask(mask, "masked_select");
  const Sizes sizes = broadcast_sizes(self.sizes(), mask.sizes(), "masked_select");
  const Tensor in = kernels::expand(self, sizes, false), m = kernels::expand(mask, sizes, false);
  const int64_t count = cpu::count_nonzero(source(m), ScalarType::Bool);
  Tensor out = empty_contiguous({count}, self.dtype(), self.device());
  cpu::masked_select(out.data(), count, source(in), source(m), item_size(self.dtype()));
  return out;
}

void masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& src) {
  const Tensor m = expanded_mask(self, mask, "masked_scatter_");
  check_same_type(self, src, "masked_scatter_");
  const Tensor in = contiguous_values(src);
  cpu::masked_scatter(strided(self), source(m), in.data(), in.numel(), item_size(self.dtype()));
}

Tensor nonzero(const Tensor& self) {
  const int64_t count = cpu::count_nonzero(source(self), self.dtype());
  // Transposed, as the peer lays it out: the columns are contiguous.
  Tensor out = lamina::empty_strided({count, self.dim()}, {1, std::max<int64_t>(count, 1)},
                                     ScalarType::Int64, self.device());
  if (self.dim() > 0)
    cpu::nonzero(out.data_as<int64_t>(), count, 1, out.strides()[1], source(self), self.dtype());
  return out;
}

// ---- advanced indexing
// ----------------------------------------------------------------------------------------------

namespace {

// Index tensors brought to int64 arrays by dimension of self; masks become their coordinates.
struct AdvancedIndex {
  Tensor self;                  // indexed dimensions at `first`, adjacent
  std::vector<Tensor> indices;  // int64, broadcast to one shape
  Sizes index_sizes;
  int64_t first = 0;  // where the index dimensions stand in the result
  Sizes result_sizes;
};

std::vector<Tensor> expand_masks(const Tensor& self, TensorList indices) {
  std::vector<Tensor> out;
  for (const Tensor& index : indices) {
    if (!index.defined()) {
      out.emplace_back();
      continue;
    }
    if (index.dtype() == ScalarType::Bool || index.dtype() == ScalarType::UInt8) {
      for (int64_t j = 0; j < index.dim(); ++j) {
        const int64_t d = static_cast<int64_t>(out.size()) + j;
        LAMINA_CHECK_INDEX(d < self.dim() && index.sizes()[j] == self.sizes()[d],
                           "index: The shape of the mask ", index.sizes(), " at index ", j,
                           " does not match the shape of the indexed tensor ", self.sizes(),
                           " at index ", d);
      }
      LAMINA_CHECK_INDEX(
          index.dim() > 0,
          "index: a mask without dimensions adds a dimension; unsqueeze self and the mask");
      const Tensor where = kernels::nonzero(index);
      for (int64_t j = 0; j < index.dim(); ++j) out.push_back(kernels::select(where, 1, j));
      continue;
    }
    LAMINA_CHECK_INDEX(
        index.dtype() == ScalarType::Int64 || index.dtype() == ScalarType::Int32 ||
            index.dtype() == ScalarType::Int16 || index.dtype() == ScalarType::Int8,
        "index: tensors used as indices must be long, int, byte or bool tensors; got ", index);
    out.push_back(converted(index, ScalarType::Int64));
  }
  LAMINA_CHECK_INDEX(static_cast<int64_t>(out.size()) <= self.dim(),
                     "index: too many indices for tensor of dimension ", self.dim(), " (got ",
                     out.size(), ")");
  return out;
}

AdvancedIndex resolve(const Tensor& self, TensorList given) {
  AdvancedIndex a;
  std::vector<Tensor> indices = expand_masks(self, given);
  indices.resize(static_cast<size_t>(self.dim()));
  Sizes order;  // of self's dimensions
  std::vector<int64_t> indexed;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (indices[d].defined()) indexed.push_back(d);
  LAMINA_CHECK_INDEX(!indexed.empty(), "index: at least one index is needed");
  const bool adjacent =
      indexed.back() - indexed.front() + 1 == static_cast<int64_t>(indexed.size());
  a.first = adjacent ? indexed.front() : 0;
  for (int64_t d = 0; d < a.first; ++d) order.push_back(d);
  for (const int64_t d : indexed) order.push_back(d);
  for (int64_t d = a.first; d < self.dim(); ++d)
    if (!indices[d].defined()) order.push_back(d);
  if (!adjacent) {
    order.clear();
    for (const int64_t d : indexed) order.push_back(d);
    for (int64_t d = 0; d < self.dim(); ++d)
      if (!indices[d].defined()) order.push_back(d);
  }
  a.self = kernels::permute(self, order);
  bool started = false;
  for (const int64_t d : indexed) {
    if (!started) {
      a.index_sizes = Sizes(std::span<const int64_t>(indices[d].sizes()));
      started = true;
      continue;
    }
    try {
      a.index_sizes = broadcast_sizes(a.index_sizes, indices[d].sizes(), "index");
    } catch (const Error&) {
      raise(ErrorKind::Index, str("index: shape mismatch: indexing tensors could not be broadcast "
                                  "together with shapes ",
                                  a.index_sizes, ", ", indices[d].sizes()));
    }
  }
  for (const int64_t d : indexed)
    a.indices.push_back(kernels::expand(indices[d], a.index_sizes, false));
  const auto k = static_cast<int64_t>(indexed.size());
  for (int64_t d = 0; d < a.first; ++d) a.result_sizes.push_back(a.self.sizes()[d]);
  for (const int64_t s : a.index_sizes) a.result_sizes.push_back(s);
  for (int64_t d = a.first + k; d < self.dim(); ++d) a.result_sizes.push_back(a.self.sizes()[d]);
  int64_t room = 1;
  for (int64_t j = 0; j < k; ++j) room *= a.self.sizes()[a.first + j];
  LAMINA_CHECK_INDEX(room > 0 || numel_of(a.index_sizes).value() == 0,
                     "index: index is out of bounds for dimension with size 0; got ", self);
  return a;
}

// The arrays that the kernel walks: self's strides without the indexed dimensions, the indices'
// strides with zeros.
template <class F>
void with_arrays(const AdvancedIndex& a, F&& f) {
  const auto k = static_cast<int64_t>(a.indices.size());
  const auto rank = static_cast<int64_t>(a.result_sizes.size());
  const auto index_rank = static_cast<int64_t>(a.index_sizes.size());
  Sizes self_strides(rank, 0);
  for (int64_t d = 0; d < a.first; ++d) self_strides[d] = a.self.strides()[d];
  for (int64_t d = a.first + index_rank; d < rank; ++d)
    self_strides[d] = a.self.strides()[d - index_rank + k];
  std::vector<Sizes> strides;
  std::vector<const int64_t*> data, stride_data;
  Sizes sizes, steps;
  SmallVector<int, 8> dims;
  strides.reserve(a.indices.size());
  for (int64_t j = 0; j < k; ++j) {
    Sizes s(rank, 0);
    for (int64_t d = 0; d < index_rank; ++d) s[a.first + d] = a.indices[j].strides()[d];
    strides.push_back(s);
    data.push_back(a.indices[j].data_as<int64_t>());
    sizes.push_back(a.self.sizes()[a.first + j]);
    steps.push_back(a.self.strides()[a.first + j]);
    dims.push_back(static_cast<int>(a.first + j));
  }
  for (const Sizes& s : strides) stride_data.push_back(s.data());
  cpu::IndexArrays arrays;
  arrays.data = data;
  arrays.strides = stride_data;
  arrays.indexed_sizes = {sizes.data(), sizes.size()};
  arrays.indexed_strides = {steps.data(), steps.size()};
  arrays.indexed_dims = {dims.data(), dims.size()};
  f(arrays, self_strides);
}

}  // namespace

namespace {
// A few whole rows of a row-major tensor. Undefined where the general way has something to do, or
// to complain about.
Tensor index_rows(const Tensor& self, TensorList indices) {
  constexpr size_t kSmall = 16384;
  if (indices.size() != 1 || !indices[0].defined() || self.dim() == 0 || self.numel() == 0)
    return {};
  const Tensor& index = indices[0];
  if (index.dtype() != ScalarType::Int64 || !index.is_contiguous() || !self.is_contiguous() ||
      !self.device().is_cpu() || !index.device().is_cpu())
    return {};
  const int64_t rows = self.sizes()[0], n = index.numel();
  const size_t bytes = self.nbytes() / static_cast<size_t>(rows);
  if (n == 0 || static_cast<uint64_t>(n) > kSmall / bytes) return {};
  const int64_t* at = index.data_as<int64_t>();
  for (int64_t i = 0; i < n; ++i)
    if (at[i] < -rows || at[i] >= rows) return {};
  Sizes sizes{std::span<const int64_t>(index.sizes())};
  for (int64_t d = 1; d < self.dim(); ++d) sizes.push_back(self.sizes()[d]);
  Tensor out = empty_contiguous(sizes, self.dtype(), kCpu);
  auto* to = static_cast<char*>(out.data());
  const auto* from = static_cast<const char*>(self.data());
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = at[i] < 0 ? at[i] + rows : at[i];
    std::memcpy(to + static_cast<size_t>(i) * bytes, from + static_cast<size_t>(row) * bytes,
                bytes);
  }
  return out;
}
}  // namespace

Tensor index(const Tensor& self, TensorList indices) {
  if (Tensor rows = index_rows(self, indices); rows.defined()) return rows;
  // One mask over the whole tensor needs no coordinates.
  if (indices.size() == 1 && indices[0].defined() && indices[0].dtype() == ScalarType::Bool &&
      self.dim() > 0 && indices[0].sizes() == self.sizes())
    return kernels::masked_select(self, indices[0]);
  const AdvancedIndex a = resolve(self, indices);
  Tensor out = empty_contiguous(a.result_sizes, self.dtype(), self.device());
  if (out.numel() == 0) return out;
  with_arrays(a, [&](const cpu::IndexArrays& arrays, const Sizes& strides) {
    cpu::index_get(strided(out),
                   {a.self.data(),
                    {a.result_sizes.data(), a.result_sizes.size()},
                    {strides.data(), strides.size()}},
                   arrays, item_size(self.dtype()));
  });
  return out;
}

void index_put(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  LAMINA_CHECK(self.dtype() == values.dtype(),
               "index_put_: Index put requires the source and destination dtypes match, got ",
               legacy_name(self.dtype()), " for the destination and ", legacy_name(values.dtype()),
               " for the source.");
  const AdvancedIndex a = resolve(self, indices);
  LAMINA_CHECK(is_expandable(values.sizes(), a.result_sizes),
               "index_put_: shape mismatch: value tensor of shape ", values.sizes(),
               " cannot be broadcast to indexing result of shape ", a.result_sizes);
  Tensor v = kernels::expand(values, a.result_sizes, false);
  if (v.numel() == 0) return;
  if (may_share_bytes(self, v))
    v = contiguous_values(v).is_same(v) ? kernels::clone(v, {}) : contiguous_values(v);
  with_arrays(a, [&](const cpu::IndexArrays& arrays, const Sizes& strides) {
    cpu::index_put({a.self.data(),
                    {a.result_sizes.data(), a.result_sizes.size()},
                    {strides.data(), strides.size()}},
                   arrays, source(v), self.dtype(), accumulate);
  });
}

// ---- gradients of views
// -----------------------------------------------------------------------------------------------

void select_backward(const Tensor& result, const Tensor& grad_output, IntList, int64_t dim,
                     int64_t index) {
  zero_bytes(result);
  copy_values(kernels::select(result, dim, index), grad_output);
}

void slice_backward(const Tensor& result, const Tensor& grad_output, IntList, int64_t dim,
                    std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  zero_bytes(result);
  copy_values(kernels::slice(result, dim, start, end, step), grad_output);
}

void diagonal_backward(const Tensor& result, const Tensor& grad_output, IntList, int64_t offset,
                       int64_t dim1, int64_t dim2) {
  zero_bytes(result);
  copy_values(kernels::diagonal(result, offset, dim1, dim2), grad_output);
}

}  // namespace lamina::kernels
