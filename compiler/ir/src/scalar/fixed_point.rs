//! Factors in fixed point.

/// A factor as a number of 31 bits and the power of two that it is multiplied by, `number * 2^(exponent - 31)`: the nearest one, 0 for
/// a factor below 2^-32. `None` when it is negative, not finite, or 2^30 and more.
pub fn fixed_point(factor: f64) -> Option<(i64, i32)> {
    if factor == 0.0 {
        return Some((0, 0));
    }
    if !(factor.is_finite() && factor > 0.0) {
        return None;
    }
    let (significand, mut exponent) = split(factor);
    let mut number = (significand * f64::from(1u32 << 31)).round() as i64;
    if number == 1 << 31 {
        number /= 2;
        exponent += 1;
    }
    match exponent {
        31.. => None,
        // What is shifted out beyond this is 0 anyway.
        ..=-32 => Some((0, 0)),
        _ => Some((number, exponent)),
    }
}

/// A positive number as one in 0.5..1 and a power of two.
fn split(value: f64) -> (f64, i32) {
    let mut exponent = value.log2().floor() as i32 + 1;
    let mut significand = value / 2f64.powi(exponent);
    while significand >= 1.0 {
        significand /= 2.0;
        exponent += 1;
    }
    while significand < 0.5 {
        significand *= 2.0;
        exponent -= 1;
    }
    (significand, exponent)
}
