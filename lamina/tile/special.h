// Special functions of real numbers, in double. The numbers of the functions stand in
// ops/special.yaml and in python/lamina/special.
#pragma once

namespace lamina::tile {

enum class Special : int {
  i0,
  i0e,
  i1,
  i1e,
  k0,
  k0e,
  k1,
  k1e,
  j0,
  j1,
  y0,
  y1,
  spherical_j0,
  erfcx,
  ndtr,
  ndtri,
  log_ndtr,
  logit,
  airy_ai,
};
enum class Special2 : int {
  zeta,
  igamma,
  igammac,
  polygamma,
  chebyshev_t,
  chebyshev_u,
  chebyshev_v,
  chebyshev_w,
  hermite_h,
  hermite_he,
  laguerre_l,
  legendre_p,
  shifted_chebyshev_t,
  shifted_chebyshev_u,
  shifted_chebyshev_v,
  shifted_chebyshev_w,
};

// NaN for a number that names no function.
double special(Special which, double x);
double special2(Special2 which, double x, double y);

// Parts of the above that lie in files of their own.
double special_zeta(double s, double q);
double special_polygamma(double n, double x);
double special_igamma(double a, double x, bool upper);
double special_polynomial(Special2 family, double x, double n);

}  // namespace lamina::tile
