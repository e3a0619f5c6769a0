//! The constants of a module in the form that the user wants: C arrays, a file that the assembler includes, an object file, or a
//! file that the program loads.

use crate::constants::declaration;
use crate::execution::WeightsAs;
use crate::loops::spelling::harmless;
use crate::module::{Module, PackedConstant};
use crate::target::ObjectFormat;
use object::write::{Object, Symbol, SymbolSection};
use object::{BinaryFormat, FileFlags, SectionKind, SymbolFlags, SymbolKind, SymbolScope};
use std::io::{self, Write};

/// Section of constants, which linker scripts for microTVM place in flash.
const SECTION: &str = ".rodata.tvm";

/// Constants and their offsets in a file: those of the caller's pool, or those that the code refers to by symbol.
fn layout(module: &Module) -> Vec<(usize, &PackedConstant)> {
    if module.execution.weights == WeightsAs::Binary {
        let pooled = module.constants.iter().filter_map(|constant| Some((constant.pool_offset?, constant)));
        let mut pooled: Vec<_> = pooled.collect();
        pooled.sort_by_key(|&(offset, _)| offset);
        return pooled;
    }
    let mut end = 0;
    let placed = module.linked_constants().map(|constant| {
        let offset = usize::next_multiple_of(end, module.plan.alignment.max(1));
        end = offset + constant.value.ty().bytes();
        (offset, constant)
    });
    placed.collect()
}

/// Writes the bytes of all constants, little-endian, with zeros between them.
pub(super) fn write_blob(module: &Module, out: &mut dyn Write) -> io::Result<()> {
    let mut end = 0;
    for (offset, constant) in layout(module) {
        out.write_all(&vec![0; offset - end])?;
        out.write_all(constant.value.bytes())?;
        end = offset + constant.value.ty().bytes();
    }
    Ok(())
}

/// C whose constants the assembler takes from the file beside it, by its own name with `.bin`.
pub(super) fn assembly(module: &Module) -> String {
    let alignment = module.plan.alignment.max(1);
    let mut text = format!(
        "/*\n * The constants of model {}: the assembler takes them from the file beside this one, little-endian.\n */\n\
         #if !defined(__GNUC__) || !defined(__ELF__)\n\
         #error \"only GNU compilers for ELF systems include files: compile the model with --weights-as c\"\n#endif\n\
         #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n\
         #error \"the file is little-endian: compile the model with --weights-as c\"\n#endif\n\
         #include <stdint.h>\n\n\
         #define BYTES __FILE__ \".bin\"\n\n",
        module.model_name
    );
    for (offset, constant) in layout(module) {
        let (symbol, bytes) = (&constant.symbol, constant.value.ty().bytes());
        text += &format!("/* {} {} */\n{};\n", harmless(&constant.name), constant.value.ty(), declaration(constant));
        text += &format!(
            "__asm__(\n  \".pushsection {SECTION},\\\"a\\\",%progbits\\n\"\n  \".balign {alignment}\\n\"\n  \
             \".globl {symbol}\\n\"\n  \".type {symbol},%object\\n\"\n  \".size {symbol}, {bytes}\\n\"\n  \
             \"{symbol}:\\n\"\n  \".incbin \\\"\" BYTES \"\\\", {offset}, {bytes}\\n\"\n  \".popsection\\n\");\n\n"
        );
    }
    text
}

/// Writes an object file that defines all constants.
pub(super) fn write_object(module: &Module, format: ObjectFormat, out: &mut dyn Write) -> io::Result<()> {
    let mut file = Object::new(BinaryFormat::Elf, format.architecture, object::Endianness::Little);
    file.flags = FileFlags::Elf {
        os_abi: object::elf::ELFOSABI_NONE,
        abi_version: 0,
        e_flags: object::elf::FileFlags(format.flags),
    };
    let section = file.add_section(Vec::new(), SECTION.into(), SectionKind::ReadOnlyData);
    // Without it, linkers take the file for one that wants an executable stack.
    file.add_section(Vec::new(), b".note.GNU-stack".to_vec(), SectionKind::Other);
    for (_, constant) in layout(module) {
        let bytes = constant.value.bytes();
        let value = file.append_section_data(section, bytes, module.plan.alignment.max(1) as u64);
        file.add_symbol(Symbol {
            name: constant.symbol.clone().into_bytes(),
            value,
            size: bytes.len() as u64,
            kind: SymbolKind::Data,
            scope: SymbolScope::Linkage,
            weak: false,
            section: SymbolSection::Section(section),
            flags: SymbolFlags::None,
        });
    }
    let bytes = file.write().map_err(io::Error::other)?;
    out.write_all(&bytes)
}
