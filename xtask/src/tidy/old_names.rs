//! Names that were given up for the field's own do not come back: an identifier of the table is refused in its crates.
//!
//! Comments and strings may hold the words, which are words of the language too.

use super::Report;
use super::code::{Source, has_word};

/// The crates, the identifier, and what is written instead.
const OLD_NAMES: [(&[&str], &str, &str); 50] = [
    (&["ensue-node"], "Survey", "Metrics"),
    (&["ensue-node", "ensue-wire"], "Surveyed", "MetricsAnswer"),
    (&["ensue-node", "ensue-wire"], "Regain", "TailFetch"),
    (&["ensue-node", "ensue-wire"], "Regained", "TailFetched"),
    (&["ensue-node"], "Regaining", "TailRecovery"),
    (&["ensue-node"], "past_the_losses", "strip_lost"),
    (&["ensue-node"], "part_from_losses", "reset_if_lost"),
    (&["ensue-node"], "Early", "Buffered"),
    (&["ensue-node"], "Intake", "Inbound"),
    (&["ensue-node"], "intake", "inbound"),
    (&["ensue-node", "ensue-store"], "Lapse", "Expiry"),
    (&["ensue-node", "ensue-store"], "lapse", "expiry"),
    (&["ensue-node"], "desk", "evaluation"),
    (&["ensue-node"], "Woken", "Unblocked"),
    (&["ensue-node"], "woken", "unblocked"),
    (&["ensue-node", "ensue-wire"], "Heard", "StabilizationReport"),
    (&["ensue-node", "ensue-wire"], "GaveUp", "TimedOut"),
    (&["ensue-node"], "gave_up", "timed_out"),
    (&["ensue-node", "ensue-wire"], "PartGone", "PartUnrecoverable"),
    (&["ensue-node", "ensue-store", "ensue-protocol"], "is_everywhere", "is_globally_stable"),
    (&["ensue-node", "ensue-store", "ensue-types"], "Sight", "Visibility"),
    (&["ensue-node"], "Slice", "SnapshotPart"),
    (&["ensue-node"], "Cuts", "SnapshotReads"),
    (&["ensue-node", "ensue-wire"], "CutRead", "SnapshotRead"),
    (&["ensue-node", "ensue-wire"], "ReadCut", "ReadSnapshot"),
    (&["ensue-node", "ensue-wire"], "ReadSlice", "ReadSnapshotPart"),
    (&["ensue-node", "ensue-store", "ensue-types"], "Tally", "EpochSum"),
    (&["ensue-node", "ensue-store", "ensue-types"], "SeenTally", "SeenSum"),
    (&["ensue-node", "ensue-types"], "lane", "adder"),
    (&["ensue-node", "ensue-types", "ensue-protocol"], "facts", "causes"),
    (&["ensue-node"], "take_up_begun", "resume_begun"),
    (&["ensue-node"], "take_up_decided", "resume_decided"),
    (&["ensue-node"], "take_up_prepared", "resume_prepared"),
    (&["ensue-node"], "take_up_local_parts", "resume_local_parts"),
    (&["ensue-node"], "take_up", "resume_open"),
    (&["ensue-node"], "give_up_checkpoint", "abandon_checkpoint"),
    (&["ensue-node"], "give_up_copy", "abandon_copy"),
    (&["ensue-node"], "given_up", "abandoned"),
    (&["ensue-node"], "tell_leads", "notify_leads"),
    (&["ensue-node"], "tell_interest", "report_interest"),
    (&["ensue-node"], "tell_changes", "notify_changes"),
    (&["ensue-node"], "tell_settled", "split_settled"),
    (&["ensue-node"], "judge_introduction", "check_introduction"),
    (&["ensue-node"], "judge_entry", "check_entry"),
    (&["ensue-node"], "judge_own", "check_own"),
    (&["ensue-node"], "let_go_of_received", "release_received"),
    (&["ensue-node"], "ask_group", "query_group"),
    (&["ensue-node"], "ask_queued", "request_queued"),
    (&["ensue-wire"], "Survey", "MetricsQuery"),
    (&["ensue-wire"], "SliceRead", "SnapshotPartRead"),
];

pub fn check(sources: &[Source<'_>], report: &mut Report) {
    for source in sources {
        let refused = OLD_NAMES.iter().filter(|(packages, ..)| packages.contains(&source.package()));
        for (_, old, new) in refused {
            for (index, line) in source.lines.iter().enumerate().filter(|(_, line)| has_word(&line.code, old))
            {
                if !line.code.contains(&format!("Rule::{old}")) {
                    report.find(source.path, index + 1, format!("`{old}` is an old name: write `{new}`"));
                }
            }
        }
    }
}
