use super::*;

/// Knows no structures, and only the functions that allocate.
#[derive(Debug)]
struct Alone;

impl Host for Alone {
    fn member(&self, _: Record, _: usize, _: Member) -> Result<Value, String> {
        Err("there are no structures".into())
    }

    fn call(&mut self, memory: &mut Memory, function: Function, arguments: &[Value]) -> Result<Value, Failure> {
        match (function, arguments) {
            (Function::Allocate, [Value::Int(bytes, _)]) => {
                let object = memory.allocate(usize::try_from(*bytes).unwrap_or(usize::MAX))?;
                Ok(Value::Pointer(Pointer::object(object, Type::VOID)))
            }
            (Function::Free, [Value::Pointer(pointer)]) => {
                memory.free(*pointer)?;
                Ok(Value::Void)
            }
            _ => Err("not here".into()),
        }
    }

    fn unsatisfied(&self, message: &str) -> String {
        format!("should satisfy: {message}")
    }
}

/// What a text returns, or why it doesn't.
fn run(text: &str) -> String {
    let (mut names, mut strings) = (Names::default(), Vec::new());
    let code = match parse_statements(text, true, &mut names, &mut strings) {
        Ok(code) => code,
        Err(fault) => return format!("{}: {}", fault.at, fault.message),
    };
    let mut machine = Machine::new(names.slots(), &strings, Memory::new(4_000_000), Alone).unwrap();
    for statement in &code.statements {
        match machine.run(statement) {
            Ok(Flow::Return(value)) => {
                return match value {
                    Value::Int(number, ty) => format!("{number} {}", Type::int(ty)),
                    Value::Single(number) => format!("{number}f"),
                    Value::Double(number) => format!("{number:?}"),
                    other => other.describe(),
                };
            }
            Ok(_) => {}
            Err(Stop::Fault(fault)) => return format!("{}: {}", fault.at, fault.message),
            Err(Stop::Check(message)) => return message,
        }
    }
    "nothing".into()
}

#[test]
fn texts_compute_what_c_computes() {
    let mut wrong = Vec::new();
    for (text, expected) in [
        ("return 1 + 2 * 3 - 4 / 2 % 3;", "5 int"),
        ("return (1 << 4 | 3) ^ 1 & ~0;", "18 int"),
        ("return 7 / 2 * 2.0;", "6.0"),
        ("return 1.5f * 2;", "3f"),
        ("return 'a' + 1;", "98 int"),
        ("return sizeof(int) * 3;", "12 uint64_t"),
        ("return 0x10 + 010 + 10u;", "34 uint32_t"),
        ("return 3000000000;", "3000000000 int64_t"),
        ("return -1 < 1u;", "0 int"),
        ("return 1 ? 2 : 3 ? 4 : 5;", "2 int"),
        ("return (1, 2, 3);", "3 int"),
        ("int a = 5; a += 3; a <<= 1; return a--;", "16 int"),
        ("int a = 5; return --a;", "4 int"),
        ("int d[] = {1, 2, 3}; return sizeof(d) / sizeof(d[0]);", "3 uint64_t"),
        ("int d[5] = {1, 2}; return d[0] + d[1] + d[4];", "3 int"),
        ("int *p = (int[]){4, 5, 6}; return *(p + 1) + p[2];", "11 int"),
        ("int d[3] = {1, 2, 3}; int *p = &d[2]; return p - d;", "2 int64_t"),
        (
            "int n = 0; for (int i = 0; i < 10; i++) { if (i == 3) continue; if (i == 6) break; n += i; } return n;",
            "12 int",
        ),
        ("int n = 0; while (n < 7) n += 2; return n;", "8 int"),
        ("int n = 0; do n++; while (n < 0); return n;", "1 int"),
        ("int a = 1; { int a = 2; { } ; } return a;", "1 int"),
        ("unsigned char c = 300; return c;", "44 uint8_t"),
        ("const char s[] = \"a\" \"b\"; return s[1] + s[2];", "98 int"),
        ("int *p = ln_alloc(sizeof(int) * 2); p[1] = 3; int v = p[0] + p[1]; ln_free(p); return v;", "3 int"),
        ("int *p = NULL; return p == 0 && !p;", "1 int"),
        ("long n = 1; size_t m = n + 1; return m;", "2 uint64_t"),
        ("double d = 1; float f = (float)d / 3; return f > 0.3 && f < 0.34;", "1 int"),
        ("int n = 3; int v[n]; v[2] = 1; return sizeof v;", "12 uint64_t"),
        ("if (0) return 1; else if (0) return 2; else return 3;", "3 int"),
        ("int a = 3; int *p = &a; *p = 4; return a;", "4 int"),
        ("ln_opck_satisfy_msg(1 > 2, \"%d%s\", 5, \"x\");", "should satisfy: 5x"),
        ("ln_opck_satisfy( 1 > (2) );", "should satisfy: 1 > (2)"),
    ] {
        let found = run(text);
        if found != expected {
            wrong.push(format!("{text}\n  {found}\n  {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn faults_are_told_with_their_places() {
    let mut wrong = Vec::new();
    for (text, expected) in [
        ("int a[2];\nreturn a[1];", "17: it reads what was never written"),
        ("int a[2] = {1, 2};\nreturn a[3];", "26: element 3 is outside of the memory, which has 2"),
        ("int a[2] = {1, 2};\nreturn a[-1];", "26: element -1 is outside of the memory, which has 2"),
        ("int a[2] = {1, 2};\nreturn a[2];", "26: element 2 is outside of the memory, which has 2"),
        ("int a; return a;", "14: it reads what was never written"),
        ("int *p; return *p;", "16: it reads a pointer that was never assigned"),
        ("int *p = NULL; return *p;", "22: it follows the null pointer"),
        ("return 1 / 0;", "11: a division by zero"),
        ("int a = 2147483647; return a + 1;", "31: 2147483648 is out of the range of `int`"),
        ("while (1) ;", "0: it takes too many steps: is there a loop without end?"),
        ("for (;;) { }", "0: it takes too many steps: is there a loop without end?"),
        ("int *p = ln_alloc(1ul << 40);", "9: it asks for 1099511627776 bytes of memory at once"),
        ("while (1) ln_alloc(1 << 23);", "10: it takes more than 16 MiB of memory"),
        ("int *p = ln_alloc(4); ln_free(p); return *p;", "41: it reads memory that was freed"),
        ("int *p = ln_alloc(4); ln_free(p); ln_free(p);", "34: it is freed twice"),
        ("int a; ln_free(&a);", "7: only what was allocated can be freed"),
        ("\"text\"[0] = 1;", "0: it writes to what can only be read"),
        ("return \"text\" * 2;", "16: `*` isn't defined between `char *` and `int`"),
    ] {
        let found = run(text);
        if found != expected {
            wrong.push(format!("{text}\n  {found}\n  {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_outside_of_the_subset_is_refused() {
    let mut wrong = Vec::new();
    for (text, expected) in [
        ("return x;", "7: 'x' isn't known here"),
        ("int count = 1; return coun;", "22: 'coun' isn't known here; 'count' is"),
        ("system(\"rm\");", "0: the function 'system' can't be called while shapes are inferred"),
        ("ln_alloc();", "0: 'ln_alloc' takes 1 arguments, not 0"),
        ("int a, a;", "7: 'a' is declared twice"),
        ("goto x;", "0: `goto` isn't in the subset of C that can be evaluated"),
        ("break;", "0: `break` stands outside of a loop"),
        ("int a = 1", "9: `;` expected, the end of the text found"),
        ("1 + ;", "4: a value expected, `;` found"),
        ("int f(int x);", "5: `;` expected, `(` found"),
        ("src->data;", "0: 'src' isn't known here"),
        ("NULL->data;", "6: the member 'data' can't be looked at while shapes are inferred"),
        ("return 09;", "7: `09` isn't a number of C, or too large"),
        ("tl_tensor t;", "10: there are no variables of type `tl_tensor` here, only pointers to it"),
        ("int a = {1};", "4: only arrays have their values in braces"),
        (
            "return sizeof(ln_alloc(4));",
            "7: `sizeof` of calls and assignments isn't in the subset of C that can be evaluated",
        ),
    ] {
        let found = run(text);
        if found != expected {
            wrong.push(format!("{text}\n  {found}\n  {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn long_texts_neither_overflow_the_stack_nor_take_long() {
    let size = 1 << 20;
    let pairs = size / 2;
    for text in [
        format!("return {}1;", "1+".repeat(pairs)),
        format!("return {}1;", "1-".repeat(pairs)),
        format!("return {}1{};", "(".repeat(pairs), ")".repeat(pairs)),
        format!("return {}1;", "-".repeat(size)),
        format!("return {}1;", "!".repeat(size)),
        format!("return {}1;", "1?".repeat(pairs)),
        format!("return {}1;", "1?1:".repeat(size / 4)),
        format!("return {}1;", "1,".repeat(pairs)),
        format!("return {}1;", "1||".repeat(size / 3)),
        format!("int a; {}1;", "a=".repeat(pairs)),
        format!("int a; a{};", "[0]".repeat(size / 3)),
        format!("int a; a{};", "++".repeat(pairs)),
        format!("{}{}", "{".repeat(pairs), "}".repeat(pairs)),
        format!("{};", "if(1)".repeat(size / 5)),
        format!("{};", "if(1);else ".repeat(size / 11)),
        format!("{};", "for(;;)".repeat(size / 7)),
        format!("return {}1;", "(int)".repeat(size / 5)),
        format!("return {}1;", "sizeof ".repeat(size / 7)),
        format!("return {};", "(int[]){".repeat(size / 8) + &"}".repeat(size / 8)),
        format!("{};", "int a;".repeat(size / 6)),
        (0..size / 12).map(|number| format!("int a{number};")).collect(),
        format!("return {};", "ln_alloc(".repeat(size / 10) + &")".repeat(size / 10)),
        "\"x\" ".repeat(size / 4),
        "x".repeat(size),
        "1".repeat(size),
    ] {
        let start = std::time::Instant::now();
        let result = run(&text);
        assert!(!result.is_empty());
        let time = start.elapsed();
        // A quarter of a second where nothing else runs.
        assert!(time.as_secs() < 5, "{time:?}: {}", &text[..40]);
    }
}
