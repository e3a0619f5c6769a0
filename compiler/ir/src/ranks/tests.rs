use super::*;
use crate::text::parse;
use crate::verify;

/// The graphs of these bodies: inputs and outputs, then statements and messages of a rank.
fn ranks(bodies: &[(&str, &str)]) -> Vec<Graph> {
    let text = |&(ports, body): &(&str, &str)| format!("mlc 1\ngraph @g{ports} {{\n{body}\n}}\n");
    let graphs = bodies.iter().map(|body| parse(&text(body), &()).unwrap());
    graphs.inspect(|graph| verify(graph).unwrap()).collect()
}

fn faults(graphs: &[Graph]) -> Vec<String> {
    let misfits = schedule(&graphs.iter().collect::<Vec<_>>()).unwrap_err();
    let faults: Vec<Diagnostic> = misfits.into_iter().map(|misfit| misfit.fault).collect();
    assert!(faults.iter().all(|fault| fault.code == Code::RanksMismatch));
    faults.iter().flat_map(|fault| std::iter::once(fault.to_string()).chain(fault.notes.clone())).collect()
}

const PAIR: [(&str, &str); 2] = [
    (
        "(%x: f32[2], %b: f32[2]) -> (\"twice\": f32[2], \"sum\": f32[2])",
        "%d = binary %x, %x {function = add}\n%s = binary %x, %b {function = add}\n
         rank 0 of 2 send \"twice\" to 1 tag -5 receive %b from 1 tag 9 return %d, %s",
    ),
    (
        "(%a: f32[1, 2]) -> (\"back\": f32[1, 2])",
        "%n = unary %a {function = negate} rank 1 of 2 receive %a from 0 tag -5 send \"back\" to 0 tag 9 return %n",
    ),
];

#[test]
fn ranks_compute_together() {
    let graphs = ranks(&PAIR);
    let graphs: Vec<&Graph> = graphs.iter().collect();
    let events = schedule(&graphs).unwrap();
    let order: Vec<(usize, usize)> = events.iter().map(|event| (event.rank, event.message)).collect();
    assert_eq!(order, [(0, 0), (1, 0), (1, 1), (0, 1)]);
    let x = Tensor::from_floats(graphs[0].ty(graphs[0].inputs()[0].into()).clone(), vec![1.0, 3.0]);
    let outputs = evaluate_ranks(&graphs, &[vec![x.clone()], Vec::new()]).unwrap();
    let values: Vec<Vec<Vec<f64>>> = outputs.iter().map(|rank| rank.iter().map(Tensor::to_floats).collect()).collect();
    assert_eq!(values, [vec![vec![-1.0, -3.0]], vec![]]);
    let fault = evaluate_ranks(&graphs, &[vec![x.clone()], vec![x]]).unwrap_err();
    assert_eq!(fault[0].message, "1 inputs given to rank 1, it takes 0");
}

#[test]
fn ranks_must_be_all_there() {
    let [first, second] = &ranks(&PAIR)[..] else { panic!() };
    assert_eq!(
        faults(std::slice::from_ref(first)),
        ["error[MLC0113]: rank 0 of 2 is in the place of rank 0 of 1 (\"g\")"]
    );
    assert_eq!(
        faults(&[first.clone(), first.clone()]),
        ["error[MLC0113]: rank 0 of 2 is in the place of rank 1 of 2 (\"g\")"]
    );
    assert_eq!(faults(&[second.clone(), first.clone()]).len(), 2);
    assert_eq!(schedule(&[&Graph::new("alone")]).unwrap(), []);
}

#[test]
fn channels_are_balanced() {
    let mut graphs = ranks(&PAIR);
    graphs[1].distribution.as_mut().unwrap().messages[1].tag = 8;
    assert_eq!(
        faults(&graphs),
        [
            "error[MLC0113]: \"back\" of rank 1 is sent and not received (\"back\")",
            "1 sent, 0 received on the channel rank 1 to rank 0, tag 8",
            "error[MLC0113]: \"b\" of rank 0 is received and not sent (\"b\")",
            "0 sent, 1 received on the channel rank 1 to rank 0, tag 9",
        ]
    );
    let longer = PAIR[1].1.replace("%a: f32[1, 2]", "%a: f32[1, 3]");
    let ports = PAIR[1].0.replace("[1, 2]", "[1, 3]");
    let graphs = ranks(&[PAIR[0], (&ports, &longer)]);
    assert_eq!(
        faults(&graphs),
        [
            "error[MLC0113]: \"twice\" of rank 0 is f32[2], and arrives as \"a\", which is f32[1, 3] (\"a\")",
            "the channel is rank 0 to rank 1, tag -5",
            "error[MLC0113]: \"back\" of rank 1 is f32[1, 3], and arrives as \"b\", which is f32[2] (\"b\")",
            "the channel is rank 1 to rank 0, tag 9",
        ]
    );
}

#[test]
fn ranks_that_wait_for_each_other_are_named() {
    let ports = "(%x: f32[2], %y: f32[2]) -> (\"x\": f32[2], \"y\": f32[2])";
    let body = |rank: usize| {
        let (from, to) = ((rank + 2) % 3, (rank + 1) % 3);
        format!("rank {rank} of 4 receive %y from {from} tag 0 send \"x\" to {to} tag 0 return %x, %y")
    };
    let waiting = "receive %y from 0 tag 1";
    let bodies = [body(0).replace(" return", " send \"x\" to 3 tag 1 return"), body(1), body(2)];
    let last = format!("rank 3 of 4 {waiting} return %x, %y");
    let bodies: Vec<(&str, &str)> = bodies.iter().chain([&last]).map(|body| (ports, &body[..])).collect();
    assert_eq!(
        faults(&ranks(&bodies)),
        [
            "error[MLC0113]: ranks wait for each other, and none of them goes on (\"g\")",
            "rank 0 waits for \"y\" from rank 2",
            "rank 2 waits for \"y\" from rank 1",
            "rank 1 waits for \"y\" from rank 0",
        ]
    );
}
