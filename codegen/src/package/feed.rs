//! The interface of a model that takes the rows of an input one after the other: what the header declares, and the functions of
//! `<model>_lib0.c`.

use super::arena;
use super::levels;
use super::names::macro_prefix;
use super::pools::Pool;
use super::signature::{memories, prototype};
use crate::loops::spelling::c_type;
use crate::module::{FedRows, Module, Port};
use crate::names::c_escape;

/// The inputs that are given as a whole, each with its number.
fn whole_inputs(module: &Module) -> impl Iterator<Item = (usize, &Port)> {
    module.inputs.iter().enumerate().filter(|(number, _)| module.execution.feed != Some(*number))
}

/// What the functions need from one call to the next: types and names of the structure's members.
fn kept(module: &Module) -> Vec<(String, &'static str)> {
    let model = &module.model_name;
    let mut kept = Vec::new();
    if whole_inputs(module).next().is_some() {
        kept.push((format!("struct tvmgen_{model}_inputs"), "inputs"));
    }
    if !module.outputs.is_empty() {
        kept.push((format!("struct tvmgen_{model}_outputs"), "outputs"));
    }
    if !Pool::external(module).is_empty() {
        kept.push((format!("struct tvmgen_{model}_workspace_pools"), "workspace_pools"));
    }
    kept
}

/// The parameters of the function that begins.
fn begin_parameters(module: &Module) -> String {
    let model = &module.model_name;
    let kept = kept(module);
    let own = kept.iter().map(|(ty, name)| format!(",\n  const {ty}* {name}"));
    format!("struct tvmgen_{model}_feeding* feeding{}", own.collect::<String>())
}

/// What the header says and declares.
pub(super) fn declarations(module: &Module, rows: &FedRows<'_>) -> String {
    let (model, prefix) = (&module.model_name, macro_prefix(module));
    let FedRows { port, count, row_bytes } = *rows;
    let name = c_escape(&port.name);
    let shape: Vec<String> = port.ty.shape.iter().skip(2).map(usize::to_string).collect();
    let reentrant = match Pool::workspaces(module).is_empty() {
        true => " * One run at a time can be under way: its intermediate results live in one static arena.\n",
        false => "",
    };
    let mut text = format!(
        "/* Rows of input \"{name}\", and bytes of each: {}[{}], dense, the last axis innermost (the channels of a pixel side by side). */\n\
         #define {prefix}_FEED_ROWS {count}\n#define {prefix}_FEED_ROW_SIZE {row_bytes}\n\n\
         /* Bytes of the input that need never be in memory. */\n#define {prefix}_FEED_SAVED_SIZE {}\n\n\
         /* What the functions below return beside 0: more rows were given than the input has, and none of them was taken; */\n\
         #define {prefix}_FEED_TOO_MANY_ROWS (-4051)\n/* or rows are missing, and nothing was computed. */\n\
         #define {prefix}_FEED_ROWS_MISSING (-4052)\n\n",
        port.ty.dtype,
        shape.join(", "),
        rows.saved_bytes(),
    );
    text += &format!(
        "/* A run between its first and its last row; the functions fill it. */\nstruct tvmgen_{model}_feeding {{\n"
    );
    for (ty, name) in kept(module) {
        text += &format!("  {ty} {name};\n");
    }
    if !module.levels.is_empty() {
        text += "  int32_t level; /* whose kernels run */\n";
    }
    text += "  size_t rows; /* taken so far */\n};\n\n";
    let input = match whole_inputs(module).next() {
        Some(_) => format!(" Of the inputs, {} is not looked at.", port.field),
        None => String::new(),
    };
    let element = if module.execution.typed_pointers { c_type(port.ty.dtype) } else { "void" };
    text + &format!(
        "/*\n * Begins a run; 0 on success. What the pointers lead to is needed until the run is finished.{input}\n{reentrant} */\n\
         int32_t tvmgen_{model}_begin(\n  {}\n);\n\n\
         /*\n * Takes the next rows, any number of them, from the first to the last, and computes what they allow; 0 on success. They aren't\n \
         * needed any more afterwards. Outputs may be written from the first row on, and are complete when the run is finished.\n */\n\
         int32_t tvmgen_{model}_feed(struct tvmgen_{model}_feeding* feeding, const {element}* rows, size_t count);\n\n\
         /* Computes the rest when all rows have been taken; 0 on success. The outputs are complete then, and the run is over. */\n\
         int32_t tvmgen_{model}_finish(struct tvmgen_{model}_feeding* feeding);\n\n",
        begin_parameters(module),
    )
}

/// Declarations of the functions that run kernels.
pub(super) fn prototypes(module: &Module) -> String {
    let both = |part: &levels::Part<'_>| {
        prototype(&part.symbol(FEED), module, &["int32_t fed", "int32_t given"])
            + &prototype(&part.symbol(FINISH), module, &[])
    };
    levels::parts(module).iter().map(both).collect()
}

/// What the names of the functions end with that take rows, and that compute the rest.
const FEED: &str = "__tvm_feed__";
const FINISH: &str = "__tvm_finish__";

/// The functions of the interface, and the ordinary one on top of them.
pub(super) fn functions(module: &Module, rows: &FedRows<'_>) -> String {
    let (model, prefix) = (&module.model_name, macro_prefix(module));
    let element = if module.execution.typed_pointers { c_type(rows.port.ty.dtype) } else { "void" };
    let call = |function: &str, input: &str, more: &[&str]| {
        let arguments = |part: &levels::Part<'_>| {
            let inputs = module.inputs.iter().enumerate().map(|(number, port)| match module.execution.feed {
                Some(fed) if fed == number => input.to_owned(),
                _ => format!("feeding->inputs.{}", port.field),
            });
            let outputs = module.outputs.iter().map(|port| format!("feeding->outputs.{}", port.field));
            let memories = memories(module, part, "(&feeding->workspace_pools)");
            inputs.chain(outputs).chain(memories).chain(more.iter().map(|&argument| argument.to_owned())).collect()
        };
        levels::call(module, function, "feeding->level", &arguments)
    };
    // The kernels that begin a run finish it.
    let level = match module.levels.is_empty() {
        true => String::new(),
        false => format!(
            "  feeding->level = {};\n  if (feeding->level < 0) {{\n    return {};\n  }}\n",
            levels::in_use(module),
            levels::missing(module)
        ),
    };
    let keeps: String = kept(module).iter().map(|(_, name)| format!("  feeding->{name} = *{name};\n")).collect();
    let address = arena::address(module);
    let mut text = format!(
        "int32_t tvmgen_{model}_begin(\n  {}\n) {{\n{keeps}{level}  feeding->rows = 0;\n  return 0;\n}}\n\n",
        begin_parameters(module)
    );
    text += &format!(
        "int32_t tvmgen_{model}_feed(struct tvmgen_{model}_feeding* feeding, const {element}* rows, size_t count) {{\n  \
         const size_t fed = feeding->rows;\n{address}  \
         if (fed > {prefix}_FEED_ROWS || count > {prefix}_FEED_ROWS - fed) {{\n    return {prefix}_FEED_TOO_MANY_ROWS;\n  }}\n  \
         if (count == 0) {{\n    return 0;\n  }}\n  feeding->rows = fed + count;\n{}}}\n\n",
        call(FEED, "rows", &["(int32_t)fed", "(int32_t)(fed + count)"]),
    );
    text += &format!(
        "int32_t tvmgen_{model}_finish(struct tvmgen_{model}_feeding* feeding) {{\n{address}  \
         if (feeding->rows != {prefix}_FEED_ROWS) {{\n    return {prefix}_FEED_ROWS_MISSING;\n  }}\n  \
         /* A run that is over takes no more rows. */\n  feeding->rows = {prefix}_FEED_ROWS + 1;\n{}}}\n\n",
        call(FINISH, "NULL", &[]),
    );
    let pools = Pool::external(module);
    let parameter = match pools.is_empty() {
        true => String::new(),
        false => format!(",\n  struct tvmgen_{model}_workspace_pools* workspace_pools"),
    };
    let unused = if module.outputs.is_empty() { "  (void)outputs;\n" } else { "" };
    let arguments: String = kept(module).iter().map(|(_, name)| format!(", {name}")).collect();
    text + &format!(
        "int32_t tvmgen_{model}_run(\n  struct tvmgen_{model}_inputs* inputs,\n  \
         struct tvmgen_{model}_outputs* outputs{parameter}\n) {{\n  struct tvmgen_{model}_feeding feeding;\n{unused}  \
         int32_t status = tvmgen_{model}_begin(&feeding{arguments});\n  if (status == 0) {{\n    \
         status = tvmgen_{model}_feed(&feeding, inputs->{}, {prefix}_FEED_ROWS);\n  }}\n  \
         if (status == 0) {{\n    status = tvmgen_{model}_finish(&feeding);\n  }}\n  return status;\n}}\n\n",
        rows.port.field,
    )
}
