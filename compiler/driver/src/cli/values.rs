//! How the values of options are read.

use mlc_ir::DType;
use mlc_ir::interface::{Normalization, RAW};
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

/// `10%` or `2.5%`, in thousandths.
pub(super) fn percent(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    match number.filter(|number| (0.0..=10_000.0).contains(number)) {
        Some(number) => Ok((number * 10.0).round() as u64),
        None => Err("it must be a share from 0% to 10000%, such as '10%'".into()),
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

/// An input's name and what is said of it, or that alone where there is no doubt.
type OfInput<T> = (Option<String>, T);

/// `[NAME=]VALUE`.
fn of_input(text: &str) -> Result<OfInput<&str>, String> {
    match text.rsplit_once('=') {
        Some(("", _)) => Err("the name before '=' is missing".into()),
        Some((name, value)) => Ok((Some(name.to_owned()), value)),
        None => Ok((None, text)),
    }
}

/// `[NAME=]u8`.
pub(super) fn raw_type(text: &str) -> Result<OfInput<DType>, String> {
    let (name, dtype) = of_input(text)?;
    let found = DType::parse_long_name(dtype).or_else(|| DType::parse(dtype)).filter(|dtype| RAW.contains(dtype));
    Ok((name, found.ok_or_else(|| format!("'{dtype}' is none of {}", RAW.map(DType::name).join(", ")))?))
}

/// `[NAME=]MEAN,DEVIATION`, each of them numbers with ':' between them.
pub(super) fn normalization(text: &str) -> Result<OfInput<Normalization>, String> {
    let (name, numbers) = of_input(text)?;
    let (means, deviations) = numbers.split_once(',').ok_or("it must have the form [NAME=]MEAN,DEVIATION")?;
    let list = |text: &str| {
        let number = |text: &str| text.trim().parse().ok().filter(|&number: &f64| (number as f32).is_finite());
        text.split(':').map(|text| number(text).ok_or(format!("'{text}' is no number"))).collect::<Result<Vec<_>, _>>()
    };
    let normalization = Normalization { means: list(means)?, deviations: list(deviations)? };
    // In single precision, which models compute in.
    match normalization.deviations.iter().any(|&deviation| deviation as f32 == 0.0) {
        true => Err("nothing can be divided by 0".into()),
        false => Ok((name, normalization)),
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

/// A time in whole seconds or minutes, in seconds.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    let (number, unit) = text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        _ => return Err("it must have the form 60s or 5m".into()),
    };
    let number: u64 = number.parse().map_err(|_| "it must have the form 60s or 5m".to_owned())?;
    if (1..=86_400).contains(&number) { Ok(number * factor) } else { Err("it must be from 1 to 86400".into()) }
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
    fn shares_are_percents() {
        assert_eq!(percent("10%"), Ok(100));
        assert_eq!(percent("2.5%"), Ok(25));
        for text in ["10", "%", "-1%", "NaN%", "1e9%"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_seconds() {
        assert_eq!((seconds("60s"), seconds("5m")), (Ok(60), Ok(300)));
        for text in ["", "60", "s", "0s", "-1s", "1.5s", "1h", "99999999s"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

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
    fn raw_types_are_integers() {
        assert_eq!(raw_type("u8"), Ok((None, DType::U8)));
        assert_eq!(raw_type("a=b=int16"), Ok((Some("a=b".into()), DType::I16)));
        for wrong in ["", "f32", "=u8", "x=", "x=i64"] {
            assert!(raw_type(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn normalizations_are_two_lists() {
        let numbers = |means: &[f64], deviations: &[f64]| Normalization {
            means: means.to_vec(),
            deviations: deviations.to_vec(),
        };
        assert_eq!(normalization("-1,2"), Ok((None, numbers(&[-1.0], &[2.0]))));
        let lists = normalization("x=0.5:0.25,1:2").unwrap();
        assert_eq!(lists, (Some("x".into()), numbers(&[0.5, 0.25], &[1.0, 2.0])));
        for wrong in ["1", "x=1", "=1,2", "1,0", "1:2,1:0", "a,1", "1,inf", "1,", "1,2,3", "1,1e-99"] {
            assert!(normalization(wrong).is_err(), "{wrong}");
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
