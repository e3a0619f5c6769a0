//! Checked access of a [`Call`] to the attributes of its operator.

use crate::axes::extents;
use crate::call::Call;
use crate::fault::Fault;
use crate::format::Format;
use crate::item::AttributeValue;
use mlc_ir::{Code, DType, Value};

type Word<'m, F> = <<F as Format>::Attribute<'m> as AttributeValue>::Word;

impl<'m, F: Format> Call<'_, 'm, F> {
    /// Whether an attribute is given.
    pub fn has(&self, key: &str) -> bool {
        self.attributes.contains_key(key)
    }

    /// An attribute, or the operand labelled so; `None` when it isn't there, or is said to be absent.
    pub fn attribute(&mut self, key: &str) -> Option<F::Attribute<'m>> {
        if let Some(place) = self.place_of_label(key) {
            let item = self.item(place);
            return F::operand_as_attribute(&item, self.builder).filter(|value| !value.is_absent());
        }
        let place = self.attributes.get_index_of(key)?;
        self.used_attributes.insert(place);
        Some(self.attributes[place].clone()).filter(|value| !value.is_absent())
    }

    /// An attribute of a kind. `kind` names it in messages.
    ///
    /// # Errors
    /// When it is of another kind.
    pub fn typed<T>(
        &mut self,
        key: &str,
        kind: &str,
        read: impl FnOnce(&F::Attribute<'m>) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        let Some(value) = self.attribute(key) else { return Ok(None) };
        read(&value).map(Some).ok_or_else(|| wrong::<F>(key, kind, &value))
    }

    /// A whole number.
    ///
    /// # Errors
    /// When it is something else; so with all that follow.
    pub fn int(&mut self, key: &str) -> Result<Option<i64>, Fault> {
        self.typed(key, "a whole number", F::Attribute::int)
    }

    /// A whole number, with its default.
    pub fn int_or(&mut self, key: &str, default: i64) -> Result<i64, Fault> {
        Ok(self.int(key)?.unwrap_or(default))
    }

    /// A number that isn't negative, with its default.
    pub fn count_or(&mut self, key: &str, default: usize) -> Result<usize, Fault> {
        let Some(number) = self.int(key)? else { return Ok(default) };
        usize::try_from(number)
            .map_err(|_| Fault::parameter(format!("{} `{key}` is {number}, at least 0 expected", F::ATTRIBUTE)))
    }

    /// A truth value, with its default.
    pub fn flag_or(&mut self, key: &str, default: bool) -> Result<bool, Fault> {
        Ok(self.typed(key, "a truth value", F::Attribute::flag)?.unwrap_or(default))
    }

    /// A number.
    pub fn float(&mut self, key: &str) -> Result<Option<f64>, Fault> {
        self.typed(key, "a number", F::Attribute::float)
    }

    /// A number, with its default.
    pub fn float_or(&mut self, key: &str, default: f64) -> Result<f64, Fault> {
        Ok(self.float(key)?.unwrap_or(default))
    }

    /// Whole numbers.
    pub fn ints(&mut self, key: &str) -> Result<Option<Vec<i64>>, Fault> {
        self.typed(key, "a list of whole numbers", F::Attribute::ints)
    }

    /// Whole numbers that the operator can't do without.
    pub fn required_ints(&mut self, key: &str) -> Result<Vec<i64>, Fault> {
        let numbers = self.ints(key)?;
        self.required(key, numbers)
    }

    /// Numbers.
    pub fn floats(&mut self, key: &str) -> Result<Option<Vec<f64>>, Fault> {
        self.typed(key, "a list of numbers", F::Attribute::floats)
    }

    /// A word.
    pub fn word(&mut self, key: &str) -> Result<Option<Word<'m, F>>, Fault> {
        self.typed(key, "a word", F::Attribute::word)
    }

    /// A data type.
    pub fn dtype(&mut self, key: &str) -> Result<Option<DType>, Fault> {
        self.typed(key, "a data type", F::Attribute::dtype)?.transpose()
    }

    /// As many whole numbers as wanted, none of them negative; one number stands for all.
    pub fn counts(&mut self, key: &str, wanted: usize, default: usize) -> Result<Vec<usize>, Fault> {
        match self.ints(key)? {
            None => Ok(vec![default; wanted]),
            Some(numbers) => counts::<F>(key, &numbers, wanted),
        }
    }

    /// An attribute that the operator can't do without.
    ///
    /// # Errors
    /// When it isn't there.
    pub fn required<T>(&self, key: &str, value: Option<T>) -> Result<T, Fault> {
        value.ok_or_else(|| Fault::new(Code::ParameterMissing, format!("{} `{key}` is missing", F::ATTRIBUTE)))
    }

    /// The axis attribute of a tensor, with its default.
    ///
    /// # Errors
    /// When the tensor has no such axis.
    pub fn axis_or(&mut self, x: Value, key: &str, default: i64) -> Result<usize, Fault> {
        let axis = self.int_or(key, default)?;
        self.axis(x, axis)
    }

    /// Marks attributes that don't matter for the result.
    pub fn ignore(&mut self, keys: &[&str]) {
        self.used_attributes.extend(keys.iter().filter_map(|key| self.attributes.get_index_of(*key)));
    }

    /// Whole numbers that older versions have as an attribute, newer ones as an operand.
    ///
    /// # Errors
    /// When they aren't known while compiling, or aren't whole numbers.
    pub fn ints_or_input(&mut self, key: &str, index: usize, operand_since: i64) -> Result<Option<Vec<i64>>, Fault> {
        if self.version() < operand_since { self.ints(key) } else { self.constant_ints(index, key) }
    }

    /// Attributes that could matter, and that the import didn't look at.
    pub(crate) fn unused_attributes(&self) -> impl Iterator<Item = &'m str> {
        let unused = self.attributes.iter().enumerate().filter(|(place, _)| !self.used_attributes.contains(place));
        unused.filter(|(_, (name, value))| F::attribute_matters(name, value)).map(|(_, (name, _))| *name)
    }
}

fn wrong<F: Format>(key: &str, kind: &str, value: &F::Attribute<'_>) -> Fault {
    Fault::parameter(format!("{} `{key}` must be {kind}, found {}", F::ATTRIBUTE, value.description()))
}

/// As many numbers as wanted, none of them negative; one number stands for all. `key` is the attribute that they are from.
///
/// # Errors
/// When there are more or fewer, or one is negative or beyond 2^31.
pub fn counts<F: Format>(key: &str, numbers: &[i64], wanted: usize) -> Result<Vec<usize>, Fault> {
    let fits = |counts: &[usize]| counts.iter().all(|&count| count <= 1 << 31);
    let counts = extents(numbers).ok().filter(|counts| fits(counts));
    match counts.as_deref() {
        Some([one]) => Ok(vec![*one; wanted]),
        Some(counts) if counts.len() == wanted => Ok(counts.to_vec()),
        _ => Err(Fault::parameter(format!(
            "{} `{key}` must have {wanted} whole numbers that aren't negative, found {numbers:?}",
            F::ATTRIBUTE
        ))),
    }
}
