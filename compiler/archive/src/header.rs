//! The header of the C interface: the order of inputs and outputs stands nowhere else.

use super::is_identifier;
use mlc_ir::{Code, Diagnostic, Location};

/// What a function resets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    /// The states of a stream, which are in the pools that it is given.
    Pools,
    /// All states.
    Everything,
}

/// What a header of the C interface declares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// Fields of the structure of inputs, in order.
    pub inputs: Vec<String>,
    /// Fields of the structure of outputs, in order.
    pub outputs: Vec<String>,
    /// Fields of the structure of memory pools that the caller provides.
    pub pools: Vec<String>,
    /// Fields of the structure of devices.
    pub devices: Vec<String>,
    /// Whether inputs and outputs lie in a pool, found by `tvmgen_<model>_map_inputs`.
    pub io_in_pool: bool,
    text: String,
    prefix: String,
}

impl Header {
    /// Reads the header of a model.
    ///
    /// # Errors
    /// When a structure isn't closed, or a field isn't a `void*`.
    pub fn parse(text: &str, model: &str) -> Result<Header, Diagnostic> {
        let text = without_comments(text);
        let prefix = format!("tvmgen_{}", model.to_ascii_lowercase());
        let fields = |what: &str| structure(&text, &format!("{prefix}_{what}"));
        Ok(Header {
            inputs: fields("inputs")?,
            outputs: fields("outputs")?,
            pools: fields("workspace_pools")?,
            devices: fields("devices")?,
            io_in_pool: text.contains(&format!("{prefix}_map_inputs")),
            prefix: prefix.to_ascii_uppercase(),
            text,
        })
    }

    /// What the model's function `reset` is called with: the pools, whose states it makes what they are before a first run, or nothing,
    /// where states are static. `None` without that function.
    pub fn reset(&self) -> Option<Reset> {
        let (_, parameters) = self.text.split_once(&format!("{}_reset(", self.prefix.to_ascii_lowercase()))?;
        let takes_pools = parameters.trim_start().starts_with("struct");
        Some(if takes_pools { Reset::Pools } else { Reset::Everything })
    }

    /// The bytes that a pool must have.
    pub fn pool_bytes(&self, pool: &str) -> Option<u64> {
        let prefix = &self.prefix;
        let pool = pool.to_ascii_uppercase();
        let sizes = ["WORKSPACE_POOL_SIZE", "CONSTANT_POOL_SIZE"];
        sizes.iter().find_map(|kind| self.number(&format!("{prefix}_{pool}_{kind}")))
    }

    /// Whether a pool is one of constants.
    pub fn is_constant(&self, pool: &str) -> bool {
        self.number(&format!("{}_{}_CONSTANT_POOL_SIZE", self.prefix, pool.to_ascii_uppercase())).is_some()
    }

    /// The macro with the bytes of a constant pool.
    pub fn pool_data(&self, pool: &str) -> Option<String> {
        let name = format!("{}_{}_CONSTANT_POOL_DATA", self.prefix, pool.to_ascii_uppercase());
        self.define(&name).map(|_| name)
    }

    /// A macro that is a number.
    fn number(&self, name: &str) -> Option<u64> {
        let digits: String = self.define(name)?.trim().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    }

    fn define(&self, name: &str) -> Option<&str> {
        self.text.lines().find_map(|line| {
            let rest = line.trim().strip_prefix("#define")?.trim_start().strip_prefix(name)?;
            rest.starts_with(char::is_whitespace).then_some(rest)
        })
    }
}

/// The text with a blank for each comment.
pub(super) fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut result = String::with_capacity(text.len());
    while let Some(start) = rest.find('/') {
        result.push_str(&rest[..start]);
        let comment = &rest[start..];
        let length = if let Some(inside) = comment.strip_prefix("/*") {
            inside.find("*/").map_or(comment.len(), |end| end + 4)
        } else if comment.starts_with("//") {
            comment.find('\n').unwrap_or(comment.len())
        } else {
            result.push('/');
            rest = &comment[1..];
            continue;
        };
        result.push(' ');
        rest = &comment[length..];
    }
    result + rest
}

/// The fields of `struct name { void* field; ... };`, none when there is no such structure.
fn structure(text: &str, name: &str) -> Result<Vec<String>, Diagnostic> {
    let fault = |message: String| {
        let message = format!("the header of the C interface, struct {name}: {message}");
        Err(Diagnostic::error(Code::Syntax, Location::default(), message))
    };
    let definition = text.match_indices("struct").find_map(|(at, _)| {
        let rest = text[at + "struct".len()..].trim_start().strip_prefix(name)?;
        rest.trim_start().strip_prefix('{')
    });
    let Some(definition) = definition else { return Ok(Vec::new()) };
    let Some((body, _)) = definition.split_once('}') else { return fault("it isn't closed".into()) };
    let mut fields = Vec::new();
    for declaration in body.split(';').map(str::trim).filter(|declaration| !declaration.is_empty()) {
        let pointer = declaration.split_once('*');
        let field = pointer.map_or("", |(_, field)| field.trim());
        if !is_identifier(field) {
            return fault(format!("'{declaration}' isn't a pointer"));
        }
        fields.push(field.to_owned());
    }
    Ok(fields)
}
