// Shape rules of padding.
#include "lamina/shape/padding.h"

#include "lamina/core/dim.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/shape/convolution.h"

namespace lamina::shape {

ResultMeta constant_pad_shape(const Tensor& self, IntList pad, const Scalar&) {
  LAMINA_CHECK(pad.size() % 2 == 0,
               "constant_pad_nd: Length of pad must be even but instead it equals ", pad.size());
  LAMINA_CHECK(static_cast<int64_t>(pad.size()) <= 2 * self.dim(),
               "constant_pad_nd: Length of pad should be no more than twice the number of "
               "dimensions of the input. Pad length is ",
               pad.size(), " while the input has ", self.dim(), " dimensions.");
  Sizes sizes{std::span<const int64_t>(self.sizes())};
  for (size_t i = 0; i < pad.size(); i += 2) {
    int64_t& size = sizes[sizes.size() - 1 - i / 2];
    const int64_t padded = Dim(size) + Dim(pad[i]) + Dim(pad[i + 1]);
    LAMINA_CHECK(padded >= 0, "constant_pad_nd: The input size ", size, ", plus negative padding ",
                 pad[i], " and ", pad[i + 1],
                 " resulted in a negative output size, which is invalid. Check dimension ",
                 sizes.size() - 1 - i / 2, " of your input.");
    // What each side cuts must be there.
    LAMINA_CHECK(std::min<int64_t>(pad[i], 0) >= -size && std::min<int64_t>(pad[i + 1], 0) >= -size,
                 "constant_pad_nd: narrow(): length must be non-negative; got pad ", pad, " for ",
                 self);
    size = padded;
  }
  return {sizes, self.dtype(), self.device(), suggested_format(self)};
}

namespace {

ResultMeta border_shape(const Tensor& self, IntList pad, Border border, const char* op) {
  const auto n = static_cast<int64_t>(pad.size() / 2);
  LAMINA_CHECK(pad.size() % 2 == 0 && n >= 1 && n <= 3, op,
               ": padding size is expected to be 2, 4 or 6; got ", pad);
  LAMINA_CHECK(self.dim() == n + 1 || self.dim() == n + 2, op, ": Expected ", n + 1, "D or ", n + 2,
               "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
               "input, but got: ",
               self.sizes());
  LAMINA_CHECK_IMPLEMENTED(border == Border::Circular || !is_bool(self.dtype()), "\"", op,
                           "\" not implemented for 'Bool'");
  Sizes sizes{std::span<const int64_t>(self.sizes())};
  for (int64_t d = self.dim() == n + 2 ? 1 : 0; d < self.dim(); ++d)
    LAMINA_CHECK(sizes[static_cast<size_t>(d)] > 0, op, ": Expected ", n + 1, "D or ", n + 2,
                 "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions "
                 "for input, but got: ",
                 self.sizes());
  for (size_t i = 0; i < pad.size(); i += 2) {
    int64_t& size = sizes[sizes.size() - 1 - i / 2];
    if (border == Border::Reflect)
      LAMINA_CHECK(pad[i] < size && pad[i + 1] < size, op,
                   ": Argument #4: Padding size should be less than the corresponding input "
                   "dimension, but got: padding (",
                   pad[i], ", ", pad[i + 1], ") at dimension ", sizes.size() - 1 - i / 2,
                   " of input ", self.sizes());
    if (border == Border::Circular)
      LAMINA_CHECK(pad[i] <= size && pad[i + 1] <= size &&
                       Dim(size) + Dim(std::min<int64_t>(pad[i], 0)) +
                               Dim(std::min<int64_t>(pad[i + 1], 0)) >=
                           1,
                   op, ": Padding value causes wrapping around more than once; got ", pad, " for ",
                   self);
    const int64_t padded = Dim(size) + Dim(pad[i]) + Dim(pad[i + 1]);
    LAMINA_CHECK(padded >= (border == Border::Circular ? 0 : 1), op, ": input ", self.sizes(),
                 " is too small for padding ", pad, "; a size would be ", padded);
    size = padded;
  }
  return {sizes, self.dtype(), self.device(), suggested_format(self)};
}

}  // namespace

ResultMeta reflection_pad_shape(const Tensor& self, IntList padding) {
  return border_shape(self, padding, Border::Reflect, "reflection_pad");
}
ResultMeta replication_pad_shape(const Tensor& self, IntList padding) {
  return border_shape(self, padding, Border::Replicate, "replication_pad");
}
ResultMeta circular_pad_shape(const Tensor& self, IntList pad) {
  return border_shape(self, pad, Border::Circular, "_pad_circular");
}
ResultMeta border_pad_backward_shape(const Tensor& grad_output, const Tensor& self, IntList pad,
                                     int64_t mode) {
  const IntList input_size = self.sizes();
  LAMINA_CHECK(mode >= 0 && mode <= 2, "pad_backward: expected a mode from 0 to 2; got ", mode);
  const ResultMeta padded = border_shape(self, pad, static_cast<Border>(mode), "pad_backward");
  LAMINA_CHECK(grad_output.sizes() == padded.sizes,
               "pad_backward: grad_output does not have the size of the result; got ", grad_output,
               " for input ", input_size, " and padding ", pad);
  return {Sizes(std::span<const int64_t>(input_size)), grad_output.dtype(), grad_output.device(),
          suggested_format(grad_output)};
}

}  // namespace lamina::shape
