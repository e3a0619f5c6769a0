//! What [`Filter`]s do to elements and to products, in vectors of channels.

use super::KernelWriter;
use super::winograd_filter::Filter;
use crate::loops::Expr;
use mlc_ir::{DType, Literal};

/// The values behind a filter's elements; without the last element, all but the value that only it belongs to.
pub fn transform_elements(kernel: &mut KernelWriter<'_>, filter: &Filter, values: &[Expr], lanes: usize) -> Vec<Expr> {
    if filter.is_identity() {
        return values.to_vec();
    }
    let rows = filter.elements();
    let terms = |row: &[f64], parity: Option<usize>, divisor: f64| -> Vec<(f64, Expr)> {
        let places = (0..values.len()).filter(|place| parity.is_none_or(|parity| place % 2 == parity));
        places.map(|place| (row[place] / divisor, values[place].clone())).collect()
    };
    let mut list = vec![sum(kernel, terms(&rows[0], None, 1.0), lanes)];
    for (pair, &point) in filter.points.iter().enumerate() {
        // A point's negative differs in the sign of every other term.
        let row = &rows[1 + 2 * pair];
        let odd_place = (filter.size() - 1) % 2;
        let same = sum(kernel, terms(row, Some(1 - odd_place), 1.0), lanes);
        let other = sum(kernel, terms(row, Some(odd_place), point), lanes);
        for sign in [1.0, -1.0] {
            list.push(sum(kernel, vec![(1.0, same.clone()), (sign * point, other.clone())], lanes));
        }
    }
    if values.len() == filter.size() {
        list.push(sum(kernel, terms(&rows[rows.len() - 1], None, 1.0), lanes));
    }
    list
}

/// The results of a filter's products.
pub fn transform_products(kernel: &mut KernelWriter<'_>, filter: &Filter, values: &[Expr], lanes: usize) -> Vec<Expr> {
    if filter.is_identity() {
        return values.to_vec();
    }
    let mut pairs = Vec::new();
    for pair in values[1..values.len() - 1].chunks_exact(2) {
        let of = |kernel: &mut KernelWriter<'_>, sign: f64| {
            sum(kernel, vec![(1.0, pair[0].clone()), (sign, pair[1].clone())], lanes)
        };
        pairs.push([of(kernel, 1.0), of(kernel, -1.0)]);
    }
    let mut list = Vec::new();
    for output in 0..filter.outputs {
        let mut terms = Vec::new();
        if output == 0 {
            terms.push((1.0, values[0].clone()));
        }
        if output + 1 == filter.outputs {
            terms.push((1.0, values[values.len() - 1].clone()));
        }
        let of_pairs = filter.points.iter().zip(&pairs);
        terms.extend(of_pairs.map(|(point, pair)| (point.powi(output as i32), pair[output % 2].clone())));
        list.push(sum(kernel, terms, lanes));
    }
    list
}

/// A sum of multiples, as a variable. Those that needn't be multiplied come first.
fn sum(kernel: &mut KernelWriter<'_>, terms: Vec<(f64, Expr)>, lanes: usize) -> Expr {
    let mut terms: Vec<(f64, Expr)> = terms.into_iter().filter(|(factor, _)| *factor != 0.0).collect();
    terms.sort_by_key(|(factor, _)| *factor != 1.0);
    let dtype = terms.first().map_or(DType::F32, |(_, value)| kernel.b.ty(value).dtype);
    let of = |factor: f64| {
        let factor =
            if dtype.is_integer() { Literal::integer(dtype, factor as i64) } else { Literal::float(dtype, factor) };
        Expr::splat(factor, lanes)
    };
    let mut total: Option<Expr> = None;
    for (factor, value) in terms {
        total = Some(match total {
            None if factor == 1.0 => value,
            None => value.times(of(factor)),
            Some(total) if factor == 1.0 => total.plus(value),
            Some(total) if factor == -1.0 => total.minus(value),
            Some(total) => total.plus(value.times(of(factor))),
        });
    }
    let total = total.unwrap_or_else(|| Expr::zero(dtype, lanes));
    kernel.b.define("t", total)
}
