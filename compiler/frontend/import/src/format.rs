//! [`Format`]: what a model format brings to the engine besides its reader and its tables of operators.

use crate::builder::Builder;
use crate::fault::Fault;
use crate::item::{AttributeValue, Item};
use indexmap::IndexMap;
use mlc_ir::Location;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::hash::Hash;

/// What happens to operands or attributes that an operator's import didn't look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surplus {
    /// The operator isn't imported.
    Refused,
    /// The user is told that they don't count.
    Warned,
}

/// An operator's attributes by name, in the file's order.
pub type Attributes<'m, F> = IndexMap<&'m str, <F as Format>::Attribute<'m>>;

/// A constant of the file, and what the format remembers of it.
pub type Constant<F> = (mlc_ir::Attribute, Option<<F as Format>::Note>);

/// An operator in the words of its file.
#[derive(Debug, Clone)]
pub struct Description<'m> {
    /// Its type.
    pub kind: &'m str,
    /// The operator set that the type is in; empty for the format's own.
    pub domain: &'m str,
    /// Its own name, or that of what it makes.
    pub name: String,
    /// Where it stands in the file, as far as that is known.
    pub location: Location,
}

/// A format of model files, as the engine sees it. `'m` is how long the model lives that is being imported.
///
/// A file's operators stand in *regions*: the model's graph, graphs that operators hold, bodies of functions. Names mean
/// something in the region that they stand in, and in the regions inside of it.
pub trait Format: Sized + 'static {
    /// The format's name on the command line.
    const NAME: &'static str;
    /// What the format calls an operator's options.
    const ATTRIBUTE: &'static str = "attribute";
    /// What happens to attributes that aren't known.
    const SURPLUS_ATTRIBUTES: Surplus = Surplus::Warned;
    /// What happens to operands that the operator doesn't take.
    const SURPLUS_OPERANDS: Surplus = Surplus::Refused;
    /// What to do about an operator set that is too old.
    const HELP_FOR_OLD_VERSION: &'static str = "export the model again with a newer exporter";
    /// Whether an input's leading open dimension beside known ones is a batch, of which one item is taken.
    const LEADING_DIMENSION_IS_BATCH: bool = false;
    /// Whether the user can say what an input always is.
    const TAKES_INPUT_VALUES: bool = false;
    /// Whether files compute shapes by operators, so that operators of constants are computed while a model is imported.
    const COMPUTES_SHAPES: bool = true;
    /// Whether a region knows nothing of what is around it but the values that go into it.
    const CLOSED_REGIONS: bool = false;
    /// Most operators that are imported, functions, unrolled loops and branches counted with every use: no small file may keep
    /// mlc busy for long.
    const MOST_OPERATORS: usize = 1 << 20;

    /// The model as its reader gives it.
    type Model<'m>: Copy;
    /// An operator of the file.
    type Operator<'m>: Copy;
    /// What names a value in the file: a text, or a number.
    type Name<'m>: Copy + Eq + Hash + Display;
    /// What an operand is; [`crate::Operand`] does where operands are tensors.
    type Item: Item;
    /// A value of an attribute.
    type Attribute<'m>: AttributeValue;
    /// A graph of the file.
    type Region<'m>: Copy;
    /// What the format knows in a region besides values: constants that aren't used yet, versions of operator sets.
    type Scope<'m>: Clone;
    /// What the format remembers of a value beyond its type.
    type Note: Clone;

    /// An operator in the file's words.
    fn describe(operator: Self::Operator<'_>) -> Description<'_>;

    /// The version of the operator's set, for formats that have versions.
    ///
    /// # Errors
    /// When the file doesn't say it.
    fn version<'m>(_scope: &Self::Scope<'m>, _operator: Self::Operator<'m>) -> Result<Option<i64>, Fault> {
        Ok(None)
    }

    /// The names of an operator's operands, in order; `None` for one that isn't there.
    fn operands<'m>(model: Self::Model<'m>, operator: Self::Operator<'m>) -> Vec<Option<Self::Name<'m>>>;

    /// The names of an operator's results, in order; `None` for one that nothing uses.
    fn results<'m>(model: Self::Model<'m>, operator: Self::Operator<'m>) -> Vec<Option<Self::Name<'m>>>;

    /// The label of an operand, in formats that have labels.
    fn label(_operator: Self::Operator<'_>, _operand: usize) -> Option<&str> {
        None
    }

    /// The label of a result, in formats that have labels for those, too.
    fn result_label(_operator: Self::Operator<'_>, _result: usize) -> Option<&str> {
        None
    }

    /// Whether a value is known before the first run, where a described operator wants one that is.
    fn is_static(_note: Option<&Self::Note>, is_constant: bool) -> bool {
        is_constant
    }

    /// An operator's attributes.
    ///
    /// # Errors
    /// When one is there twice, or refers to something that isn't there.
    fn attributes<'m>(scope: &Self::Scope<'m>, operator: Self::Operator<'m>) -> Result<Attributes<'m, Self>, Fault>;

    /// A labelled operand in the place of an attribute.
    fn operand_as_attribute<'m>(_item: &Self::Item, _builder: &Builder) -> Option<Self::Attribute<'m>> {
        None
    }

    /// Whether an attribute that the import didn't look at could change the result.
    fn attribute_matters<'m>(_name: &str, _value: &Self::Attribute<'m>) -> bool {
        true
    }

    /// The constant that a name stands for, if the file has one in that scope.
    fn constant<'m>(
        _model: Self::Model<'m>,
        _scope: &Self::Scope<'m>,
        _name: Self::Name<'m>,
    ) -> Option<Result<Constant<Self>, Fault>> {
        None
    }

    /// Puts several results as the names of the file want them, for files that name a tuple of them.
    fn arrange<'m>(
        _model: Self::Model<'m>,
        _operator: Self::Operator<'m>,
        results: Vec<Self::Item>,
    ) -> Vec<Self::Item> {
        results
    }

    /// Compares a result with what the file says of it; named dimensions may become known by that.
    ///
    /// # Errors
    /// When the file says something else.
    fn check_result<'m>(
        _model: Self::Model<'m>,
        _dimensions: &mut BTreeMap<String, usize>,
        _builder: &Builder,
        _name: Self::Name<'m>,
        _item: &Self::Item,
    ) -> Result<(), Fault> {
        Ok(())
    }

    /// The regions that an operator holds.
    fn regions(_operator: Self::Operator<'_>) -> Vec<Self::Region<'_>> {
        Vec::new()
    }

    /// What a region is called.
    fn region_name<'m>(_region: Self::Region<'m>) -> &'m str {
        ""
    }

    /// The operators of a region in an order in which they can be computed.
    fn operators(_region: Self::Region<'_>) -> Vec<Self::Operator<'_>> {
        Vec::new()
    }

    /// What a region calls the values that go into it.
    fn region_inputs(_region: Self::Region<'_>) -> Vec<Self::Name<'_>> {
        Vec::new()
    }

    /// The values that come out of a region.
    fn region_outputs(_region: Self::Region<'_>) -> Vec<Self::Name<'_>> {
        Vec::new()
    }

    /// The scope of a region inside of another one.
    fn inner_scope<'m>(outer: &Self::Scope<'m>, _region: Self::Region<'m>) -> Self::Scope<'m> {
        outer.clone()
    }

    /// The function of the model that an operator calls, and what its body knows.
    ///
    /// # Errors
    /// When the call doesn't fit.
    #[allow(clippy::type_complexity)]
    fn function<'m>(
        _model: Self::Model<'m>,
        _scope: &Self::Scope<'m>,
        _operator: Self::Operator<'m>,
    ) -> Result<Option<(Self::Region<'m>, Self::Scope<'m>)>, Fault> {
        Ok(None)
    }

    /// Whether the model has a function for an operator.
    fn calls_function<'m>(_model: Self::Model<'m>, _operator: Self::Operator<'m>) -> bool {
        false
    }

    /// What to do about an operator that isn't known.
    fn help_for_unknown(kind: &str) -> String;
}
