// pad by mode.
#include "lamina/shape/padding.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/ops.h"

namespace lamina::composite {

Tensor border_pad(const Tensor& self, IntList pad, int64_t mode) {
  const auto n = pad.size() / 2;
  if (mode == static_cast<int64_t>(Border::Circular)) return ops::_pad_circular(self, pad);
  if (mode == static_cast<int64_t>(Border::Reflect))
    return n == 1   ? ops::reflection_pad1d(self, pad)
           : n == 2 ? ops::reflection_pad2d(self, pad)
                    : ops::reflection_pad3d(self, pad);
  return n == 1   ? ops::replication_pad1d(self, pad)
         : n == 2 ? ops::replication_pad2d(self, pad)
                  : ops::replication_pad3d(self, pad);
}

Tensor pad(const Tensor& self, IntList pad, std::string_view mode, std::optional<double> value) {
  LAMINA_CHECK(pad.size() % 2 == 0, "pad: Padding length must be divisible by 2; got ", pad);
  LAMINA_CHECK(static_cast<int64_t>(pad.size()) <= 2 * self.dim(),
               "pad: Padding length should be less than or equal to two times the input dimension "
               "but got padding length ",
               pad.size(), " and input of dimension ", self.dim());
  if (mode == "constant") return ops::constant_pad_nd(self, pad, Scalar(value.value_or(0.0)));
  LAMINA_CHECK(!value || *value == 0, "pad: Padding mode \"", mode,
               "\" doesn't take in value argument");
  const auto n = static_cast<int64_t>(pad.size() / 2);
  LAMINA_CHECK_IMPLEMENTED(
      n >= 1 && n <= 3 && (self.dim() == n + 1 || self.dim() == n + 2), "pad: Padding size ",
      pad.size(), " is not supported for ", self.dim(),
      "D input tensor; for non-constant padding: 2 for 2D or 3D input (the last dimension), 4 for "
      "3D or 4D, 6 for 4D or 5D");
  if (mode == "reflect") return border_pad(self, pad, static_cast<int64_t>(Border::Reflect));
  if (mode == "replicate") return border_pad(self, pad, static_cast<int64_t>(Border::Replicate));
  LAMINA_CHECK_IMPLEMENTED(mode == "circular", "pad: Unrecognised padding mode ", mode,
                           "; expected constant, reflect, replicate or circular");
  return ops::_pad_circular(self, pad);
}

}  // namespace lamina::composite
