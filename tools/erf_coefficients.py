"""Derive the polynomial coefficients of flipopt/erf.py: ``python tools/erf_coefficients.py`` (needs mpmath).

Chebyshev interpolation in 60 digits of the three functions that the kernel needs, each on its own interval:

    erf(u) / u       in s = u^2            for s in [0, 1]
    erfcx(u)         in t = (u-3)/(u+3)    for u in [1, top], top = 6 (float64) or 4 (float32)
    exp(r)           in r                  for |r| <= log(2) / 2
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp

Function = Callable[[mp.mpf], mp.mpf]
mp.mp.dps = 60


def interpolate(f: Function, low: mp.mpf, high: mp.mpf, degree: int) -> list[mp.mpf]:
    """Coefficients, constant first, of the polynomial through f at the Chebyshev points of [low, high]."""
    points = [mp.cos(mp.pi * (2 * k + 1) / (2 * degree + 2)) for k in range(degree + 1)]
    points = [low + (high - low) * (point + 1) / 2 for point in points]
    vandermonde = mp.matrix([[point**power for power in range(degree + 1)] for point in points])
    return list(mp.lu_solve(vandermonde, mp.matrix([f(point) for point in points])))


def erf_ratio(s: mp.mpf) -> mp.mpf:
    return mp.erf(mp.sqrt(s)) / mp.sqrt(s)


def erfcx_of_t(t: mp.mpf) -> mp.mpf:
    u = 3 * (1 + t) / (1 - t)
    return mp.erfc(u) * mp.exp(u * u)


def worst(f: Function, coefficients: list[mp.mpf], low: mp.mpf, high: mp.mpf) -> mp.mpf:
    points = [low + (high - low) * mp.mpf(k) / 500 for k in range(1, 500)]
    return max(abs(mp.polyval(coefficients[::-1], point) - f(point)) for point in points)


def main() -> None:
    half = mp.log(2) / 2
    for precision, degrees, top in (("64", (11, 14, 11), 6), ("32", (6, 6, 6), 4)):
        intervals = ((mp.mpf(0), mp.mpf(1)), (mp.mpf(-1) / 2, mp.mpf(top - 3) / (top + 3)), (-half, half))
        names, functions = ("ERF", "ERFCX", "EXP"), (erf_ratio, erfcx_of_t, mp.exp)
        for name, f, degree, (low, high) in zip(names, functions, degrees, intervals, strict=True):
            coefficients = interpolate(f, low, high, degree)
            print(f"# largest error {mp.nstr(worst(f, coefficients, low, high), 2)}")
            print(f"{name}_{precision} = (")
            for coefficient in coefficients:
                print(f"    {mp.nstr(coefficient, 17 if precision == '64' else 9)},")
            print(")")


if __name__ == "__main__":
    main()
