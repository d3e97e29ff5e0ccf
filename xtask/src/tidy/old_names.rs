//! Names that were given up for the field's own do not come back: an identifier of the table is refused in its crates.
//!
//! Comments and strings may hold the words, which are words of the language too.

use super::Report;
use super::code::{Source, has_word};

/// The crates, the identifier, and what is written instead.
const OLD_NAMES: [(&[&str], &str, &str); 98] = [
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
    (&["ensue-node"], "tells_calls", "reports_calls"),
    (&["ensue-node"], "is_told_changes", "receives_changes"),
    (&["ensue-node"], "asks_previous", "wants_previous"),
    (&["ensue-node"], "ask_anew", "request_anew"),
    (&["ensue-node"], "first_to_ask_anew", "first_to_request_anew"),
    (&["ensue-node"], "heard_us", "last_message_us"),
    (&["ensue-node"], "told_us", "notified_us"),
    (&["ensue-node"], "tell_figures", "publish_metrics"),
    (&["ensue-node"], "begins_life", "begins_incarnation"),
    (&["ensue-node"], "of_this_life", "of_this_incarnation"),
    (&["ensue-wire"], "near_a_life", "near_an_incarnation"),
    (&["ensue-node"], "ForgettingPass", "TrimPass"),
    (&["ensue-node"], "applied_everywhere", "applied_by_all"),
    (&["ensue-node"], "shown_everywhere", "shown_by_all"),
    (&["ensue-node"], "synced_everywhere", "synced_by_all"),
    (&["ensue-node"], "durable_everywhere", "durable_at_all"),
    (&["ensue-protocol"], "told_to_all", "announced_to_all"),
    (&["ensue-protocol"], "told_by_all", "reported_by_all"),
    (&["ensue-node"], "note_told_by_all", "note_reported_by_all"),
    (&["ensue-node"], "note_told", "note_reported"),
    (&["ensue-node"], "untold_for_too_long", "overdue_reports"),
    (&["ensue-node"], "untold", "unreported"),
    (&["ensue-node"], "has_told", "has_reported"),
    (&["ensue-node"], "all_have_told", "all_have_reported"),
    (&["ensue-node"], "note_heard", "note_arrival"),
    (&["ensue-node"], "note_end_everywhere", "note_end_at_all"),
    (&["ensue-node"], "is_nowhere", "is_beyond_end"),
    (&["ensue-node"], "is_heard_by", "is_acknowledged_by"),
    (&["ensue-node"], "heard_by", "acknowledged_by"),
    (&["ensue-node"], "note_heard_by", "note_acknowledged_by"),
    (&["ensue-node"], "asks_siblings", "queries_siblings"),
    (&["ensue-protocol", "ensue-node"], "asks_coordinator", "queries_coordinator"),
    (&["ensue-node"], "asked_again", "requested_again"),
    (&["ensue-node"], "Unheard", "Undelivered"),
    (&["ensue-node"], "on_unheard", "on_undelivered"),
    (&["ensue-node"], "ask_again", "request_again"),
    (&["ensue-node"], "Asker", "Requester"),
    (&["ensue-node"], "told_of_its_end", "notified_of_end"),
    (&["ensue-node"], "is_told_its_end", "is_notified_of_end"),
    (&["ensue-store"], "tells_of_losses", "records_losses"),
    (&["ensue-store"], "tells_of_forgotten", "records_trimmed"),
    (&["ensue-node"], "will_promise_later", "will_close_later"),
    (&["ensue-node"], "may_promise", "may_close_time"),
    (&["ensue-node"], "promise_times", "close_times"),
    (&["ensue-node"], "is_vouched_for", "starts_alone"),
    (&["ensue-node"], "is_theirs_to_say", "may_speak"),
    (&["ensue-node"], "check_hearsay", "check_report"),
    (&["ensue-node"], "Life", "Lifecycle"),
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
