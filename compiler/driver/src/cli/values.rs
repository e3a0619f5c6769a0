//! How the values of options are read.

use mlc_ir::DType;
use std::path::PathBuf;

/// `NAME=1,3,224,224`; `NAME=` is a scalar.
pub(super) fn input_shape(text: &str) -> Result<(String, Vec<usize>), String> {
    let (name, extents) = text.rsplit_once('=').ok_or("it must have the form NAME=1,3,224,224")?;
    if name.is_empty() {
        return Err("the name before '=' is missing".into());
    }
    let extents = extents.trim_start_matches('[').trim_end_matches(']');
    let parse = |extent: &str| {
        let extent = extent.trim();
        extent.parse::<usize>().ok().filter(|&extent| extent <= 1 << 40).ok_or(format!("'{extent}' is no extent"))
    };
    let extents: Result<Vec<usize>, String> =
        if extents.is_empty() { Ok(Vec::new()) } else { extents.split(',').map(parse).collect() };
    Ok((name.to_owned(), extents?))
}

/// `NAME=uint8`.
pub(super) fn input_dtype(text: &str) -> Result<(String, DType), String> {
    let (name, dtype) = text.rsplit_once('=').ok_or("it must have the form NAME=uint8")?;
    if name.is_empty() {
        return Err("the name before '=' is missing".into());
    }
    let found = DType::parse_long_name(dtype).or_else(|| DType::parse(dtype));
    let known = || DType::ALL.map(DType::long_name).join(", ");
    Ok((name.to_owned(), found.ok_or_else(|| format!("'{dtype}' is none of the data types {}", known()))?))
}

/// `NAME=FILE`.
pub(super) fn input_value(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_owned(), file.into())),
        _ => Err("it must have the form NAME=FILE".into()),
    }
}

/// `NAME=N`.
pub(super) fn dimension(text: &str) -> Result<(String, usize), String> {
    match input_shape(text)? {
        (name, extents) if extents.len() == 1 => Ok((name, extents[0])),
        _ => Err("it must have the form NAME=N".into()),
    }
}

/// `INPUT=OUTPUT`, or `INPUT` alone.
pub(super) fn state(text: &str) -> Result<(String, Option<String>), String> {
    match text.split_once('=') {
        Some((input, output)) if !input.is_empty() && !output.is_empty() => {
            Ok((input.to_owned(), Some(output.to_owned())))
        }
        None if !text.is_empty() => Ok((text.to_owned(), None)),
        _ => Err("it must have the form INPUT=OUTPUT, or be one name".into()),
    }
}

/// `OLD=NEW`; the old name may hold the sign, too.
pub(super) fn rename(text: &str) -> Result<(String, String), String> {
    match text.rsplit_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => Ok((old.to_owned(), new.to_owned())),
        _ => Err("it must have the form OLD=NEW".into()),
    }
}

/// A node and the schedule of its kernel.
pub(super) fn schedule(text: &str) -> Result<(String, String), String> {
    // Settings of the schedule have the sign, too.
    match text.split_once('=') {
        Some((node, schedule)) if !node.is_empty() && !schedule.is_empty() => {
            Ok((node.to_owned(), schedule.to_owned()))
        }
        _ => Err("it must have the form NODE=KIND".into()),
    }
}

pub(super) fn tolerance(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "it is no number".to_owned())?;
    if value >= 0.0 && value.is_finite() { Ok(value) } else { Err("it must be finite and not negative".into()) }
}

/// A clock in GHz.
pub(super) fn clock(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "it is no number".to_owned())?;
    if value > 0.0 && value.is_finite() { Ok(value) } else { Err("it must be positive and finite".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_types_are_parsed() {
        assert_eq!(input_dtype("a=uint8"), Ok(("a".into(), DType::U8)));
        assert_eq!(input_dtype("a=b=f16"), Ok(("a=b".into(), DType::F16)));
        assert!(["a", "=f32", "a=", "a=byte"].iter().all(|wrong| input_dtype(wrong).is_err()));
    }

    #[test]
    fn shapes_are_parsed() {
        assert_eq!(input_shape("a=1,3,4"), Ok(("a".into(), vec![1, 3, 4])));
        assert_eq!(input_shape("a=b=[2, 3]"), Ok(("a=b".into(), vec![2, 3])));
        assert_eq!(input_shape("a="), Ok(("a".into(), vec![])));
        for wrong in ["a", "=1", "a=x", "a=1,,2", "a=-1", "a=99999999999999999999", "a=9999999999999"] {
            assert!(input_shape(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn dimensions_are_parsed() {
        assert_eq!(dimension("batch=4"), Ok(("batch".into(), 4)));
        for wrong in ["batch", "batch=", "batch=1,2", "=1", "batch=x"] {
            assert!(dimension(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn states_are_two_names() {
        assert_eq!(state("h=h.1"), Ok(("h".into(), Some("h.1".into()))));
        assert_eq!(state("cache"), Ok(("cache".into(), None)));
        for wrong in ["", "=h", "h="] {
            assert!(state(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn new_names_stand_behind_the_last_sign() {
        assert_eq!(rename("a=b=c"), Ok(("a=b".into(), "c".into())));
        for wrong in ["a", "=a", "a=", ""] {
            assert!(rename(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tolerances_are_finite_and_positive() {
        assert_eq!(tolerance("1e-3"), Ok(1e-3));
        for wrong in ["-1", "inf", "nan", "x"] {
            assert!(tolerance(wrong).is_err(), "{wrong}");
        }
    }
}
