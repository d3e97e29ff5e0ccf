//! What sessions with the pasts of clients read when everything is at rest: the same as sessions without a past.

use crate::oracle::{Final, Violation, property};
use crate::resp::Answer;
use ensue_types::DatacenterId;

/// What each of them asks for, again and again: one key, and several that are read at one moment.
pub(super) const QUESTIONS: [&str; 2] = ["GET r0", "MGET r0 r1 d0 d1"];

/// What they were answered, question by question.
#[derive(Debug, Default)]
pub(super) struct PastReads {
    reads: Vec<(DatacenterId, &'static str, Answer)>,
}

impl PastReads {
    /// Answers to the questions, in their order. An error is judged elsewhere.
    pub(super) fn note(&mut self, datacenter: DatacenterId, answers: &[Answer]) {
        let read = QUESTIONS.iter().cycle().zip(answers).filter(|(_, answer)| answer.error().is_none());
        self.reads.extend(read.map(|(question, answer)| (datacenter, *question, answer.clone())));
    }

    pub(super) fn judge(&self, finals: &[Final]) -> Result<(), Violation> {
        for (datacenter, question, answer) in &self.reads {
            let Some(last) = finals.iter().find(|last| last.datacenter == *datacenter) else { continue };
            let keys = question.split(' ').skip(1);
            let items = match answer {
                Answer::Array(items) => items.as_slice(),
                one => std::slice::from_ref(one),
            };
            for (key, item) in keys.zip(items) {
                let asked = format!("GET {key}");
                let shown = last.answers.iter().find(|(question, _)| *question == asked);
                if let Some((_, shown)) = shown.filter(|(_, shown)| *shown != item.to_string()) {
                    let words = format!(
                        "{datacenter} shows {key} = {item} to a session with a past, by {question}; and {shown} to \
                         one without"
                    );
                    return Err(Violation::new(property::STALE, words));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_past_reads_in_the_end_what_others_read() {
        let value = |text: &str| Answer::Bulk(text.as_bytes().to_vec());
        let shown = |key: &str, answer: &Answer| (format!("GET {key}"), answer.to_string());
        let answers = vec![shown("r0", &value("v1")), shown("d1", &Answer::Nil)];
        let (values, folded, sequences) = (Vec::new(), Vec::new(), Vec::new());
        let last = [Final { datacenter: DatacenterId(1), values, folded, sequences, answers }];
        let judge = |one: &str, several: [Answer; 4]| {
            let mut reads = PastReads::default();
            let error = Answer::Error("BLOCKED for a while".to_owned());
            reads.note(DatacenterId(1), &[value("v1"), error, value(one), Answer::Array(several.to_vec())]);
            reads.judge(&last).is_ok()
        };
        let row = |first: &str, last: Answer| [value(first), value("v9"), Answer::Nil, last];
        assert!(judge("v1", row("v1", Answer::Nil)));
        assert!(!judge("v0", row("v1", Answer::Nil)));
        assert!(!judge("v1", row("v0", Answer::Nil)));
        assert!(!judge("v1", row("v1", value("v2"))));
    }
}
