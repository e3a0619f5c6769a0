use super::*;
use crate::model::Complex;
use std::time::{Duration, Instant};

#[test]
fn expressions_print_as_they_were() {
    let texts = [
        "@0",
        "add(@0,1)",
        "mul(add(@0,@12),-0.5)",
        "[size(@0,2),size(@0,3)]",
        "int(floor(mul(size(@0,2),2.0)))",
        "[add(@0,1),mul(@0,2)]",
        "None",
        "True",
        "torch.float",
        "torch.long(@0)",
        "[]",
        "[None,@0]",
        "max(@0,-inf)",
        "mul(@0,2.0-3.0j)",
        "[1,[2,3]]",
        "pow(@0,nan)",
    ];
    for text in texts {
        assert_eq!(Expression::parse(text).unwrap().to_string(), text);
    }
}

#[test]
fn misplaced_parentheses_around_bare_functions_do_not_count() {
    let printed = |text: &str| Expression::parse(text).unwrap().to_string();
    assert_eq!(printed("expm1,@0"), "expm1(@0)");
    assert_eq!(printed("log1p,@0"), "log1p(@0)");
    assert_eq!(printed("add(expm1,expm1,sub(@0,0.5),1)"), "add(expm1(expm1(sub(@0,0.5))),1)");
    // As exported for y - log1p(x) / expm1(y) + log1p(exp(x)).
    let text = "add(sub(@0,div(log1p,@1)),expm1),@0,log1p,exp(@1)";
    assert_eq!(printed(text), "add(sub(@0,div(log1p(@1),expm1(@0))),log1p(exp(@1)))");
    assert_eq!(printed("mul(log1p,add(mul(size(@0,2),2),1)),@1"), "mul(log1p(add(mul(size(@0,2),2),1)),@1)");
    let error = Expression::parse("expm1,").unwrap_err();
    assert_eq!(error.to_string(), "`expm1` takes 1 argument, found 0");
    for text in ["neg(expm1,)", "expm1,@0,@1", "add(log1p,@0)", "[log1p,@0]", "log1p,@x"] {
        assert!(Expression::parse(text).is_err(), "{text}");
    }
    assert!(Expression::parse(&format!("{}1", "expm1,".repeat(200_000))).is_ok());
}

#[test]
fn operands_come_before_their_users() {
    let expression = Expression::parse("sub(,mul(@1,2),@0)").unwrap();
    let nodes: Vec<_> = expression.nodes().map(|(_, node)| node.clone()).collect();
    assert_eq!(nodes[0], Node::Input(1));
    assert_eq!(nodes[1], Node::Int(2));
    assert!(matches!(nodes[2], Node::Call(Function::Mul, _)));
    assert_eq!(nodes[3], Node::Input(0));
    let Node::Call(Function::Sub, children) = expression.node(expression.root()) else { panic!("no sub") };
    assert_eq!(expression.children(*children), [NodeId(2), NodeId(3)]);
    assert_eq!(expression.highest_input(), Some(1));
}

#[test]
fn literals_have_kinds() {
    let root = |text: &str| {
        let expression = Expression::parse(text).unwrap();
        expression.node(expression.root()).clone()
    };
    assert_eq!(root("-1"), Node::Int(-1));
    assert_eq!(root("2147483648"), Node::Float(2_147_483_648.0));
    assert_eq!(root("1.000000e-5"), Node::Float(1e-5));
    assert_eq!(root("1e-05"), Node::Float(1e-5));
    assert_eq!(root("2.000000e+00+-3.000000e+00j"), Node::Complex(Complex { re: 2.0, im: -3.0 }));
    assert_eq!(root("add(@0,,1)"), Node::Call(Function::Add, Children { start: 0, end: 2 }));
}

#[test]
fn mistakes_have_a_place() {
    let cases = [
        ("", 1, "the expression is empty"),
        ("add(@0)", 1, "`add` takes 2 arguments, found 1"),
        ("mul(2,abs(@0,1))", 7, "`abs` takes 1 argument, found 2"),
        ("size()", 1, "`size` takes 1 or 2 arguments, found 0"),
        ("add(@0,mul(@0,2)", 1, "`(` is never closed"),
        ("[1,2", 1, "`[` is never closed"),
        ("add(@0,1))", 10, "`)` closes nothing"),
        ("[1)", 3, "`)` closes nothing"),
        ("add(@0,1]", 9, "`]` closes nothing"),
        ("add(@0,1)2", 10, "expected `,` or a closing bracket"),
        ("@0,@1", 3, "expected `,` or a closing bracket"),
        ("[1][2]", 4, "expected `,` or a closing bracket"),
        ("(@0)", 1, "expected the name of a function before `(`"),
        ("add(@0,frob(@1))", 8, "unknown function `frob`"),
        ("add(@0,@)", 8, "`@` isn't an input; expected @0, @1 and so on"),
        ("@+1", 1, "`@+1` isn't an input; expected @0, @1 and so on"),
        ("@99999999999", 1, "`@99999999999` isn't an input; expected @0, @1 and so on"),
        ("add(@0,2x)", 8, "`2x` isn't a number"),
    ];
    for (text, column, message) in cases {
        let error = Expression::parse(text).unwrap_err();
        assert_eq!((error.column, error.to_string().as_str()), (column, message), "{text}");
    }
}

#[test]
fn deep_nesting_takes_neither_stack_nor_time() {
    let depth = 200_000;
    let start = Instant::now();
    let text = format!("{}@0{}", "add(1,".repeat(depth), ")".repeat(depth));
    let expression = Expression::parse(&text).unwrap();
    assert_eq!(expression.nodes().len(), 2 * depth + 1);
    assert_eq!(expression.to_string(), text);
    assert!(Expression::parse(&"[".repeat(depth)).is_err());
    assert!(Expression::parse(&"add(".repeat(depth)).is_err());
    assert!(Expression::parse(&"]".repeat(depth)).is_err());
    // Seconds on the busiest machine, hours if each level looked at all others.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn every_function_is_found_by_its_name() {
    for &function in Function::ALL {
        assert_eq!(Function::from_name(function.name()), Some(function));
        let arguments = vec!["@0"; *function.arity().start()].join(",");
        assert!(Expression::parse(&format!("{}({arguments})", function.name())).is_ok());
    }
}
