//! Random PNNX models survive writing and reading; damaged ones never make the reader panic.
#![allow(clippy::unwrap_used, clippy::panic)]

use mlc_pnnx::{
    Attribute, Complex, Dimension, ElementType, Model, Operand, OperandId, OperandType, Operator, OperatorId,
    Parameter, read, to_bin, to_param_text,
};
use std::collections::BTreeMap;

/// A small generator of pseudo-random numbers, the same ones in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound
    }

    fn list<T>(&mut self, least: usize, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let length = least + self.below(3);
        (0..length).map(|_| item(self)).collect()
    }

    fn int(&mut self) -> i32 {
        (self.next() as i32) >> self.below(32)
    }

    fn float(&mut self) -> f32 {
        let value = f32::from_bits((self.next() << 1) as u32);
        if value.is_finite() { value } else { 0.5 }
    }

    fn complex(&mut self) -> Complex {
        Complex { re: self.float(), im: self.float() }
    }

    fn word(&mut self) -> String {
        ["torch.float", "same", "@0", "a=b", "größe", "inf", "None2"][self.below(7)].to_owned()
    }

    fn parameter(&mut self) -> Parameter {
        match self.below(10) {
            0 => Parameter::Null,
            1 => Parameter::Bool(self.below(2) == 0),
            2 => Parameter::Int(self.int()),
            3 => Parameter::Float(self.float()),
            4 => Parameter::String(self.word()),
            5 => Parameter::IntList(self.list(1, Random::int)),
            6 => Parameter::FloatList(self.list(1, Random::float)),
            7 => Parameter::StringList(self.list(1, Random::word)),
            8 => Parameter::Complex(self.complex()),
            _ => Parameter::ComplexList(self.list(1, Random::complex)),
        }
    }

    fn attribute(&mut self) -> Attribute {
        let element_type = ElementType::ALL[1 + self.below(ElementType::ALL.len() - 1)];
        let shape = self.list(0, |random| random.below(4) as u32);
        let mut attribute = Attribute { element_type, shape, data: Default::default() };
        let size = attribute.byte_size().unwrap();
        attribute.data = (0..size).map(|_| self.next() as u8).collect();
        attribute
    }

    fn operand_type(&mut self) -> OperandType {
        let element_type = ElementType::ALL[self.below(ElementType::ALL.len())];
        let shape = self.list(0, |random| match random.below(4) {
            0 => Dimension::Unknown,
            1 => Dimension::Symbol("h".into()),
            _ => Dimension::Known(random.below(1000) as u32),
        });
        OperandType { element_type, shape }
    }

    fn model(&mut self) -> Model {
        let mut model = Model::default();
        for index in 0..1 + self.below(6) {
            let id = OperatorId(index as u32);
            let defined = model.operands.len();
            let input_count = if defined == 0 { 0 } else { self.below(4) };
            let inputs: Vec<_> = (0..input_count).map(|_| OperandId(self.below(defined) as u32)).collect();
            for input in &inputs {
                let consumers = &mut model.operands[input.index()].consumers;
                if consumers.last() != Some(&id) {
                    consumers.push(id);
                }
            }
            let outputs: Vec<_> = (0..1 + self.below(2)).map(|at| OperandId((defined + at) as u32)).collect();
            for output in &outputs {
                let ty = (self.below(2) == 0).then(|| self.operand_type());
                model.operands.push(Operand { name: output.0.to_string(), ty, producer: id, consumers: Vec::new() });
            }
            let input_names = self.labels(&inputs);
            let parameters = self.list(0, Random::parameter).into_iter().enumerate();
            let attributes = self.list(0, Random::attribute).into_iter().enumerate();
            model.operators.push(Operator {
                kind: format!("kind.{}", self.below(5)),
                name: format!("{index}.layer"),
                inputs,
                outputs,
                input_names,
                parameters: parameters.map(|(at, parameter)| (format!("p{at}"), parameter)).collect(),
                attributes: attributes.map(|(at, attribute)| (format!("w.{at}"), attribute)).collect(),
                line: 0,
            });
        }
        let last = OperatorId(model.operators.len() as u32);
        let result = OperandId(model.operands.len() as u32 - 1);
        model.operands[result.index()].consumers.push(last);
        model.operators.push(Operator {
            kind: "pnnx.Output".into(),
            name: "out".into(),
            inputs: vec![result],
            outputs: vec![],
            input_names: vec![],
            parameters: BTreeMap::new(),
            attributes: BTreeMap::new(),
            line: 0,
        });
        model
    }

    /// Labels for some of the inputs. The first use of an operand gets one before the later ones do, because the file
    /// can't say anything else.
    fn labels(&mut self, inputs: &[OperandId]) -> Vec<Option<String>> {
        let mut unlabelled = Vec::new();
        let mut labels = Vec::new();
        for (position, input) in inputs.iter().enumerate() {
            let labelled = self.below(2) == 0 && !unlabelled.contains(input);
            if !labelled {
                unlabelled.push(*input);
            }
            labels.push(labelled.then(|| format!("k{position}")));
        }
        if labels.iter().all(Option::is_none) { Vec::new() } else { labels }
    }
}

#[test]
fn random_models_survive_a_round_trip() {
    let mut random = Random(1);
    for round in 0..2000 {
        let model = random.model();
        let text = to_param_text(&model).unwrap();
        let bin = to_bin(&model).unwrap();
        let (back, diagnostics) =
            read(text.as_bytes(), Some(bin.clone().into())).unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
        assert_eq!(back, model, "round {round}:\n{text}");
        assert_eq!(diagnostics, [], "round {round}:\n{text}");
        assert_eq!(to_param_text(&back).unwrap(), text);
        assert_eq!(to_bin(&back).unwrap(), bin);
    }
}

#[test]
fn damaged_models_are_read_or_refused() {
    const PIECES: &[&[u8]] = &[
        b"",
        b" ",
        b"\n",
        b"=",
        b"@",
        b"$",
        b"#",
        b"(",
        b")",
        b"%",
        b"-",
        b"99999999999",
        b"\xff",
        b"e",
        b"j",
        b"\t0 1 ",
    ];
    let mut random = Random(2);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..3000 {
        let model = random.model();
        let mut text = to_param_text(&model).unwrap().into_bytes();
        let mut bin = to_bin(&model).unwrap();
        if random.below(2) == 0 {
            let at = random.below(text.len());
            let end = (at + random.below(3)).min(text.len());
            text.splice(at..end, PIECES[random.below(PIECES.len())].iter().copied());
        } else {
            let at = random.below(bin.len());
            bin[at] = random.next() as u8;
        }
        match read(&text, Some(bin.into())) {
            // What is accepted must also survive.
            Ok((model, _)) => {
                let text = to_param_text(&model).unwrap();
                let (back, _) = read(text.as_bytes(), Some(to_bin(&model).unwrap().into()))
                    .unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
                assert_eq!(back, model, "{text}");
                accepted += 1;
            }
            Err(diagnostics) => {
                assert!(diagnostics.iter().any(|diagnostic| diagnostic.is_error()));
                refused += 1;
            }
        }
    }
    assert!(accepted > 100 && refused > 100, "{accepted} accepted, {refused} refused");
}
