//! Tensors that share memory.

use super::{data, numbers, outputs, refusal};

fn sort(from: &str, to: &str) -> String {
    format!("sort1d(src_key={from} | dst_key={to} | dir=TL_SORT_DIR_ASCENDING);\n")
}

#[test]
fn who_reads_memory_that_was_written_over_sees_what_was_written() {
    let x = data("x", "TL_FLOAT", "[4]", "[3, 1, 4, 2]");
    let views = "forward(src=x | dst=v |);\nreshape(src=x | dst=m | dims=[2, 2]);\n";
    let pair = |first: &str, second: &str| format!("elew(src1={first}, src2={second} | dst=y | elew_op=TL_SUB);\n");
    // Before: the numbers of the file; after: sorted ones, in the shape of the view.
    let before = format!("{x}{views}transpose(src=m | dst=t | axes=[1, 0]);\n{}", sort("v", "s"));
    let found = outputs(&format!("{before}elew(src1=s, src2=x | dst=y | elew_op=TL_SUB);\n"));
    assert_eq!(found[0], ("t".into(), vec![2, 2], vec![3.0, 4.0, 1.0, 2.0]));
    assert_eq!(found[1], ("y".into(), vec![4], vec![0.0; 4]));
    let after = format!("{x}{views}{}transpose(src=m | dst=t | axes=[1, 0]);\n{}", sort("v", "s"), pair("s", "x"));
    assert_eq!(outputs(&after)[0], ("t".into(), vec![2, 2], vec![1.0, 3.0, 2.0, 4.0]));
    // A copy has memory of its own.
    let copied = format!("{x}slice(src=x | dst=c | axis=0, start=0, len=4);\n{}{}", sort("c", "s"), pair("s", "x"));
    assert_eq!(numbers(&copied), [-2.0, 1.0, -1.0, 2.0]);
    // Written over twice, and read in between.
    let twice = format!(
        "{x}{}elew(src1=x, src2=x | dst=d | elew_op=TL_SUM);\nrearange(src=x | dst=r | start=0, stop=4, step=1);\n{}",
        sort("x", "s"),
        pair("d", "s")
    );
    let found = outputs(&twice);
    assert_eq!(found.iter().map(|(name, _, _)| name.as_str()).collect::<Vec<_>>(), ["r", "y"]);
    assert_eq!(found[1].2, [2.0, 3.0, 4.0, 5.0]);
    // An output shows what its memory holds when the run is over.
    let output = format!("{x}forward(src=x | dst=y |);\n{}", sort("x", "s"));
    assert!(outputs(&output).iter().all(|(_, _, numbers)| *numbers == [1.0, 2.0, 3.0, 4.0]));
}

#[test]
fn keys_carry_their_values_along() {
    let text = data("k", "TL_FLOAT", "[3]", "[0.5, 2, 1]")
        + &data("v", "TL_INT32", "[3]", "[7, 8, 9]")
        + "sort1d_by_key(src_val=v, src_key=k | dst_key=sk, dst_val=sv | dir=TL_SORT_DIR_DESCENDING);\n"
        + "elew(src1=v, src2=sv | dst=d | elew_op=TL_SUM);\n";
    let found = outputs(&text);
    assert_eq!(found[0], ("sk".into(), vec![3], vec![2.0, 1.0, 0.5]));
    assert_eq!(found[1], ("d".into(), vec![3], vec![16.0, 18.0, 14.0]));
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let x = data("x", "TL_INT32", "[2]", "[2, 1]");
    let same = format!("{x}sort1d_by_key(src_key=x, src_val=x | dst_key=a, dst_val=b | dir=TL_SORT_DIR_ASCENDING);");
    assert!(refusal(&same).message.contains("shares its memory"));
    let part = format!("{x}gather_nocopy_cpu(src1=x | dst=g |);\n{}", sort("x", "s"));
    assert!(refusal(&part).message.contains("part of another tensor"));
    // Without an operator that writes over them, parts are but tensors.
    assert_eq!(numbers(&format!("{x}gather_nocopy_cpu(src2=x, src1=x | dst=g |);\n")), [2.0, 1.0, 2.0, 1.0]);
    let again = format!("{x}{}", sort("x", "x"));
    assert!(refusal(&again).message.contains("`x` is defined twice"));
}
