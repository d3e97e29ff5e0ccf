//! One line of a configuration file into words: blanks part them, quotes hold them together.
//!
//! Within double quotes `\n`, `\r`, `\t`, `\\`, `\"` and `\xHH` are escapes; within single quotes only `\'` is.

/// The words of a line; none for an empty line or a comment.
pub(super) fn split(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut letters = line.trim().chars().peekable();
    if letters.peek() == Some(&'#') {
        return Ok(words);
    }
    while let Some(&letter) = letters.peek() {
        if letter.is_whitespace() {
            letters.next();
            continue;
        }
        let mut word = String::new();
        match letter {
            '"' | '\'' => {
                letters.next();
                read_quoted(letter, &mut letters, &mut word)?;
                if letters.peek().is_some_and(|next| !next.is_whitespace()) {
                    return Err("a closing quote must be followed by a blank or the end of the line");
                }
            }
            _ => {
                while let Some(letter) = letters.next_if(|letter| !letter.is_whitespace()) {
                    word.push(letter);
                }
            }
        }
        words.push(word);
    }
    Ok(words)
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn read_quoted(quote: char, letters: &mut Letters<'_>, word: &mut String) -> Result<(), &'static str> {
    loop {
        match letters.next() {
            None => return Err("a quote is not closed"),
            Some(letter) if letter == quote => return Ok(()),
            Some('\\') if quote == '"' => word.push(read_escape(letters)?),
            Some('\\') if letters.peek() == Some(&'\'') => word.extend(letters.next()),
            Some(letter) => word.push(letter),
        }
    }
}

fn read_escape(letters: &mut Letters<'_>) -> Result<char, &'static str> {
    match letters.next() {
        None => Err("a quote is not closed"),
        Some('n') => Ok('\n'),
        Some('r') => Ok('\r'),
        Some('t') => Ok('\t'),
        Some('x') => {
            let mut digit = || letters.next().and_then(|letter| letter.to_digit(16));
            match (digit(), digit()) {
                (Some(high), Some(low)) => char::from_u32(high * 16 + low).ok_or("\\x needs two digits"),
                _ => Err("\\x needs two hexadecimal digits"),
            }
        }
        Some(other) => Ok(other),
    }
}
