//! Comments in JSON texts, for formats that allow them.

use std::borrow::Cow;

/// The text with spaces in the place of comments: `//` to the end of the line, and `/*` to `*/`. What stands where stays there.
///
/// What isn't closed goes on to the end of the text.
pub fn without_comments(text: &[u8]) -> Cow<'_, [u8]> {
    let mut text = Cow::Borrowed(text);
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let rest = &text[at..];
        match byte {
            b'"' => at += string_length(rest),
            b'/' if matches!(rest.get(1), Some(b'/' | b'*')) => {
                let length = comment_length(rest);
                let comment = &mut text.to_mut()[at..at + length];
                comment.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
                at += length;
            }
            _ => at += 1,
        }
    }
    text
}

/// Bytes of the string that a text starts with, quotes included. JSON's strings end on their line, even if they aren't closed.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\n' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// Bytes of the comment that a text starts with.
fn comment_length(text: &[u8]) -> usize {
    let found = match text[1] {
        b'/' => text.iter().position(|&byte| byte == b'\n'),
        _ => text[2..].windows(2).position(|window| window == b"*/").map(|place| place + 4),
    };
    found.unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_become_spaces_of_the_same_length() {
        for (text, expected) in [
            ("{} // a \"b\n[]", "{}        \n[]"),
            ("[1, /* two\n */ 3]", "[1,       \n    3]"),
            (r#"["http://x", "/* \" // */"]"#, r#"["http://x", "/* \" // */"]"#),
            ("1 /* open", "1        "),
            ("1 /*/ 2", "1      "),
            ("\"open // 1\n2 // 3", "\"open // 1\n2     "),
            ("1 / 2 /", "1 / 2 /"),
            ("\"\\", "\"\\"),
        ] {
            assert_eq!(String::from_utf8_lossy(&without_comments(text.as_bytes())), expected, "{text}");
        }
        assert!(matches!(without_comments(b"{\"a\": \"//\"}"), Cow::Borrowed(_)));
    }
}
