//! Operators of which the conformance collection has no case, and what they refuse.

use super::{data, input, numbers, outputs, refusal};

fn near(found: &[f64], expected: &[f64]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(x, y)| (x - y).abs() <= 1e-5 * y.abs().max(1.0))
}

#[test]
fn tensors_are_created() {
    assert_eq!(numbers(&data("x", "TL_FLOAT", "[2, 2]", "[1, 2, 3]")), [1.0, 2.0, 3.0, 0.0]);
    assert_eq!(numbers(&data("x", "TL_UINT8", "[4]", "[-1, 2.9, 300, 7]")), [0.0, 2.0, 255.0, 7.0]);
    assert_eq!(numbers(&data("x", "TL_BOOL", "[3]", "[0, 0.5, -2]")), [0.0, 1.0, 1.0]);
    assert_eq!(numbers(&data("x", "TL_FLOAT", "[1]", "[1e300]")), [f64::from(f32::MAX)]);
    assert_eq!(numbers("zeros(| dst=z | dtype=TL_INT16, dims=[3]);"), [0.0; 3]);
    assert_eq!(numbers("arange(| dst=a | dtype=TL_INT8, start=-1.5, stop=2, step=1);"), [-1.0, 0.0, 0.0, 1.0]);
    for (text, words) in [
        (data("x", "TL_HALF", "[1]", "[0]"), "no data type `TL_HALF`"),
        (data("x", "TL_FLOAT", "[0]", "[0]"), "`dims` must be"),
        (data("x", "TL_FLOAT", "[1.5]", "[0]"), "`dims` must be"),
        (data("x", "TL_FLOAT", "[2147483647, 2147483647, 9]", "[0]"), "is too large"),
        (data("x", "TL_FLOAT", "[2]", "[1, 2, 3]"), "`data` has 3 numbers"),
        ("arange(| dst=a | dtype=TL_FLOAT, start=0, stop=1, step=0);".into(), "no length that fits"),
        ("arange(| dst=a | dtype=TL_FLOAT, start=0, stop=-1, step=1);".into(), "no length that fits"),
        ("arange(| dst=a | dtype=TL_FLOAT, start=0, stop=1e12, step=1);".into(), "no length that fits"),
    ] {
        assert!(refusal(&text).message.contains(words), "{text}: {}", refusal(&text).message);
    }
}

#[test]
fn tensors_are_stacked_and_taken_apart() {
    let parts = data("a", "TL_FLOAT", "[2]", "[1, 2]") + &data("b", "TL_FLOAT", "[2]", "[3, 4]");
    let stacked = format!("{parts}gather(src2=b, src1=a | dst=g |);\n");
    assert_eq!(outputs(&stacked)[0], ("g".into(), vec![2, 2], vec![1.0, 2.0, 3.0, 4.0]));
    let apart = outputs(&format!("{stacked}scatter(src=g | dst2=d, dst1=c |);\n"));
    assert_eq!(apart, [("c".into(), vec![2], vec![1.0, 2.0]), ("d".into(), vec![2], vec![3.0, 4.0])]);
    assert!(
        refusal(&format!("{stacked}scatter(src=g | dst1=c |);\n"))
            .message
            .contains("as many elements as there are results (1)")
    );
    let other = parts.replace("dims=[2], ran=[0, 0], data=[3, 4]", "dims=[1], ran=[0, 0], data=[3]");
    let message = refusal(&format!("{other}gather(src1=a, src2=b | dst=g |);\n")).message;
    assert!(message.contains("`src1` (`a`) has the shape [2] and `src2` (`b`) has [1]"), "{message}");
}

#[test]
fn transposed_convolutions_spread_their_windows() {
    let operands = data("x", "TL_FLOAT", "[1, 1, 2, 2]", "[1, 2, 3, 4]")
        + &data("w", "TL_FLOAT", "[1, 1, 2, 2]", "[1, 10, 100, 1000]")
        + &data("b", "TL_FLOAT", "[1]", "[0.5]");
    let deconv = |options: &str| {
        format!(
            "{operands}deconv2d(src=x, weight=w, bias=b | dst=y | group=1, size=[2, 2], stride=[2, 2], dilation=[1, 1], {options});\n"
        )
    };
    let plain = "padding=[0, 0, 0, 0], output_padding=[0, 0], output_dims=[0, 0, 0, 0], autopad=NOTSET";
    let expected =
        [1.5, 10.5, 2.5, 20.5, 100.5, 1000.5, 200.5, 2000.5, 3.5, 30.5, 4.5, 40.5, 300.5, 3000.5, 400.5, 4000.5];
    assert_eq!(outputs(&deconv(plain))[0], ("y".into(), vec![1, 1, 4, 4], expected.to_vec()));
    // One row and column less: at the end, or at the start.
    let same = |mode: &str| {
        deconv(&format!("padding=[9, 9, 9, 9], output_padding=[0, 0], output_dims=[1, 1, 3, 3], autopad={mode}"))
    };
    let upper = [1.5, 10.5, 2.5, 100.5, 1000.5, 200.5, 3.5, 30.5, 4.5];
    assert_eq!(numbers(&same("SAME_UPPER")), upper);
    let lower = [1000.5, 200.5, 2000.5, 30.5, 4.5, 40.5, 3000.5, 400.5, 4000.5];
    assert_eq!(numbers(&same("SAME_LOWER")), lower);
    let added = deconv("padding=[0, 0, 0, 0], output_padding=[1, 0], output_dims=[1, 1, 5, 4], autopad=VALID");
    assert_eq!(outputs(&added)[0].1, [1, 1, 5, 4]);
    for (options, words) in [
        (
            "padding=[0, 0, 0, 0], output_padding=[0, 0], output_dims=[1, 1, 5, 4], autopad=NOTSET",
            "but the result is [1, 1, 4, 4]",
        ),
        (
            "padding=[0, 0, 0, 0], output_padding=[0, 0], output_dims=[1, 1, 0, 4], autopad=SAME_UPPER",
            "needs all of `output_dims`",
        ),
        ("padding=[2, 0, 2, 0], output_padding=[0, 0], output_dims=[0, 0, 0, 0], autopad=NOTSET", "leave nothing"),
    ] {
        assert!(refusal(&deconv(options)).message.contains(words), "{options}");
    }
}

#[test]
fn convolutions_and_pools_check_their_operands() {
    let operands = input("x", "TL_FLOAT", "[1, 2, 4, 4]")
        + &input("w", "TL_FLOAT", "[2, 2, 3, 3]")
        + &input("b", "TL_FLOAT", "[2]");
    let conv = |group: &str, size: &str, padding: &str| {
        format!(
            "{operands}conv2d(src=x, weight=w, bias=b | dst=y | group={group}, size={size}, stride=[1, 1], padding={padding}, dilation=[1, 1], autopad=NOTSET);\n"
        )
    };
    for (text, words) in [
        (
            conv("2", "[3, 3]", "[0, 0, 0, 0]"),
            "channels of `src`, with those of `weight` in each group: 2 found, 4 expected",
        ),
        (conv("1", "[3, 1]", "[0, 0, 0, 0]"), "but `size` is [3, 1]"),
        (conv("0", "[3, 3]", "[0, 0, 0, 0]"), "`group` has 0, at least 1 expected"),
        (conv("1", "[3, 3]", "[0, 0, 0]"), "`padding` has 3 numbers, 4 expected"),
        (conv("1", "[3, 3]", "[0, -1, 0, 0]"), "`padding` has -1, at least 0 expected"),
        (
            format!(
                "{operands}maxpool2d(src=x | dst=y | size=[5, 1], stride=[1, 1], padding=[0, 0, 0, 0], autopad=NOTSET);"
            ),
            "a window of 5 doesn't fit",
        ),
        (
            format!(
                "{operands}avgpool2d(src=x | dst=y | size=[2, 2], stride=[1, 1], padding=[2, 0, 0, 0], autopad=NOTSET);"
            ),
            "lies in the pads",
        ),
        (
            format!(
                "{operands}maxpool2d(src=b | dst=y | size=[1, 1], stride=[1, 1], padding=[0, 0, 0, 0], autopad=NOTSET);"
            ),
            "`src` (`b`) is",
        ),
        (format!("{operands}resize(src=b | dst=y | mode=TL_LINEAR, dims=[4]);"), "only TL_NEAREST"),
        (format!("{operands}upsample(src=b | dst=y | mode=TL_NEAREST, scales=[0.1]);"), "`scales` is [0.1]"),
        (format!("{operands}transpose(src=w | dst=y | axes=[0, 1, 1, 2]);"), "every axis"),
        (format!("{operands}slice(src=b | dst=y | axis=0, start=1, len=2);"), "leave axis 0"),
        (format!("{operands}reshape(src=b | dst=y | dims=[3]);"), "don't fill the shape [3]"),
        (format!("{operands}softmax(src=b | dst=y | axis=1);"), "has 1 axes"),
        (format!("{operands}concat(src1=x, src2=w | dst=y | axis=0);"), "same extents but for axis 0"),
        (format!("{operands}elew(src1=b, src2=b | dst=y | elew_op=TL_ADD);"), "`elew_op` is `TL_ADD`"),
        (format!("{operands}pick1d(src=b, src_index=b | dst=y | len=1, stride=1);"), "i32 expected"),
    ] {
        assert!(refusal(&text).message.contains(words), "{text}: {}", refusal(&text).message);
    }
}

#[test]
fn integers_are_powers_quotients_and_slopes_by_the_formats_rules() {
    let pair = data("a", "TL_INT8", "[3]", "[10, -7, 2]") + &data("b", "TL_INT8", "[3]", "[3, 2, -1]");
    let elew = |operator: &str| numbers(&format!("{pair}elew(src1=a, src2=b | dst=y | elew_op={operator});"));
    assert_eq!(elew("TL_POW"), [127.0, 49.0, 0.0]);
    assert_eq!(elew("TL_DIV"), [3.0, -3.0, -2.0]);
    let slope = |slope: &str| {
        numbers(
            &format!("{pair}lrelu(src=a | dst=y | negslope={slope});")
                .replace(&data("b", "TL_INT8", "[3]", "[3, 2, -1]"), ""),
        )
    };
    assert_eq!(slope("2.9"), [10.0, -14.0, 2.0]);
    let truth = data("p", "TL_BOOL", "[4]", "[0, 0, 1, 1]") + &data("q", "TL_BOOL", "[4]", "[0, 1, 0, 1]");
    let elew = |operator: &str| numbers(&format!("{truth}elew(src1=p, src2=q | dst=y | elew_op={operator});"));
    assert_eq!(elew("TL_SUM"), [0.0, 1.0, 1.0, 1.0]);
    assert_eq!(elew("TL_SUB"), [0.0, 1.0, 1.0, 0.0]);
    assert_eq!(elew("TL_MUL"), [0.0, 0.0, 0.0, 1.0]);
}

#[test]
fn statistics_become_scales_without_a_square_root() {
    let text = data("m", "TL_FLOAT", "[2]", "[1, 2]")
        + &data("v", "TL_FLOAT", "[2]", "[3, 0.5]")
        + &data("s", "TL_FLOAT", "[2]", "[8, 6]")
        + &data("o", "TL_FLOAT", "[2]", "[0, 1]")
        + "bn2scale_wts_cpu(src_mean=m, src_var=v, src_scale=s, src_offset=o | dst_scale=a, dst_shift=b, dst_power=c | epsilon=1);\n";
    let found = outputs(&text);
    assert_eq!((&found[0].2, &found[1].2, &found[2].2), (&vec![2.0, 4.0], &vec![-2.0, -7.0], &vec![1.0, 1.0]));
    assert!(refusal(&text.replace("epsilon=1", "epsilon=0")).message.contains("more than 0 expected"));
}

#[test]
fn yolos_boxes_are_in_the_images_coordinates() {
    // One anchor with one class, a grid of one row and two columns.
    let text = data("f", "TL_FLOAT", "[1, 6, 1, 2]", "[0, 1, 0, -1, 0, 1, 100, -100, 0, 2, 0, -2]")
        + &data("a", "TL_FLOAT", "[1, 2]", "[10, 20]")
        + "detect_yolov3(feature=f, anchors=a | box_centers=c, box_sizes=s, boxes=b, confs=p, probs=q | img_width=100, img_height=40);\n";
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let found = outputs(&text);
    let shapes: Vec<usize> = found.iter().map(|(_, shape, _)| shape[2]).collect();
    assert_eq!((shapes, &found[0].1), (vec![2, 2, 4, 1, 1], &vec![1, 1, 2, 1, 2]));
    let centres = [sigmoid(0.0) * 50.0, (sigmoid(1.0) + 1.0) * 50.0, sigmoid(0.0) * 40.0, sigmoid(-1.0) * 40.0];
    assert!(near(&found[0].2, &centres), "{:?}", found[0].2);
    let sizes = [10.0, 10.0 * 1f64.exp(), 20.0 * 50.0, 20.0 * 1e-9];
    assert!(near(&found[1].2, &sizes), "{:?}", found[1].2);
    let corner = |sign: f64| (0..4).map(move |place| (place, sign));
    let boxes: Vec<f64> =
        corner(-0.5).chain(corner(0.5)).map(|(place, sign)| centres[place] + sign * sizes[place]).collect();
    assert!(near(&found[2].2, &boxes), "{:?}", found[2].2);
    assert!(near(&found[3].2, &[sigmoid(0.0), sigmoid(2.0)]) && near(&found[4].2, &[sigmoid(0.0), sigmoid(-2.0)]));
    let wrong = text.replace("dims=[1, 2], ran", "dims=[2, 1], ran");
    assert!(refusal(&wrong).message.contains("pairs of numbers"), "{}", refusal(&wrong).message);
}
