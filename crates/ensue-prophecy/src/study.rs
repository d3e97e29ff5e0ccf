//! How often the responses of web sites change, as section 8 of the paper measures it: which share of requests Prophecy
//! would serve fast, and how small the changes are.
//!
//! Responses arrive in the order in which they were recorded. A *transition* is a response of a URL that differs from
//! the one before; the *transition ratio* of a URL is its transitions over its repeated requests. Responses on both
//! sides of a transition are cut into chunks by their content, 1 KB each in expectation and 20 at least (section 8.2),
//! and compared. Only the latest response of each URL is kept, as chunks.

mod chunks;

use crate::limits::{STUDY_RESPONSE_BYTES_MAX, STUDY_URLS_MAX};
use chunks::Chunks;
use std::collections::BTreeMap;

/// Requests of a URL from which on the paper plots it.
pub const REQUESTS_MIN: usize = 25;

/// What a study refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StudyError {
    /// More different URLs than are kept.
    #[error("more than {STUDY_URLS_MAX} different URLs")]
    Urls,
}

/// A transition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Chunks of the former response that the new one does not have, of all of its chunks; 0 to 1.
    pub differing: f64,
    /// Chunks that one contiguous edit inserts, deletes or replaces, whichever side has more of them.
    pub edited_chunks: usize,
    /// Whether one contiguous edit explains it that keeps half of the chunks and at most doubles their number.
    pub is_single_edit: bool,
}

/// What is known of a URL.
#[derive(Clone, Debug)]
struct Url {
    requests: usize,
    transitions: usize,
    is_first_party: bool,
    latest: Chunks,
}

/// A URL in the result.
#[derive(Clone, Debug, PartialEq)]
pub struct UrlRatio {
    /// The URL.
    pub url: String,
    /// How often it was requested.
    pub requests: usize,
    /// How often its response had changed.
    pub transitions: usize,
    /// Whether its host is one of the sites that were visited.
    pub is_first_party: bool,
}

impl UrlRatio {
    /// Transitions over repeated requests; 0 if it was never repeated.
    pub fn ratio(&self) -> f64 {
        self.transitions as f64 / self.requests.saturating_sub(1).max(1) as f64
    }
}

/// All that was recorded.
#[derive(Debug, Default)]
pub struct Study {
    urls: BTreeMap<String, Url>,
    changes: Vec<Change>,
}

/// The result.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Every URL, the most requested first.
    pub urls: Vec<UrlRatio>,
    /// Requests of them.
    pub requests: usize,
    /// Requests that were the first of their URL, which a sketcher replicates.
    pub first_requests: usize,
    /// Requests whose response had changed.
    pub transitions: usize,
    /// Every transition.
    pub changes: Vec<Change>,
}

impl Study {
    /// Nothing recorded.
    pub fn new() -> Study {
        Study::default()
    }

    /// The next response of a URL; its bytes are what a sketch would be computed of.
    pub fn add(&mut self, url: &str, is_first_party: bool, response: &[u8]) -> Result<(), StudyError> {
        let kept = &response[..response.len().min(STUDY_RESPONSE_BYTES_MAX)];
        let Some(known) = self.urls.get_mut(url) else {
            if self.urls.len() >= STUDY_URLS_MAX {
                return Err(StudyError::Urls);
            }
            let latest = Chunks::of(kept, response);
            self.urls.insert(url.into(), Url { requests: 1, transitions: 0, is_first_party, latest });
            return Ok(());
        };
        known.requests += 1;
        let new = Chunks::like(&known.latest, kept, response);
        if new.whole() != known.latest.whole() {
            known.transitions += 1;
            self.changes.push(known.latest.compare(&new));
            // The next transition is measured with chunks of the size of this response.
            known.latest = Chunks::of(kept, response);
        }
        Ok(())
    }

    /// The result.
    pub fn summary(self) -> Summary {
        let ratio = |(name, url): (String, Url)| UrlRatio {
            url: name,
            requests: url.requests,
            transitions: url.transitions,
            is_first_party: url.is_first_party,
        };
        let mut urls: Vec<UrlRatio> = self.urls.into_iter().map(ratio).collect();
        urls.sort_by(|one, other| other.requests.cmp(&one.requests).then_with(|| one.url.cmp(&other.url)));
        Summary {
            requests: urls.iter().map(|url| url.requests).sum(),
            first_requests: urls.len(),
            transitions: urls.iter().map(|url| url.transitions).sum(),
            changes: self.changes,
            urls,
        }
    }
}

impl Summary {
    /// Requests that a sketcher would have served by one replica: repeated ones whose response had not changed. The
    /// blacklist and replicas that fail are not considered.
    pub fn fast_requests(&self) -> usize {
        self.requests - self.first_requests - self.transitions
    }

    /// URLs with at least so many requests, of one party or of both.
    pub fn repeated(&self, requests_min: usize, first_party: Option<bool>) -> Vec<&UrlRatio> {
        let is_wanted = |url: &&UrlRatio| {
            url.requests >= requests_min && first_party.is_none_or(|wanted| wanted == url.is_first_party)
        };
        self.urls.iter().filter(is_wanted).collect()
    }
}

/// The share of values that are at most `bound`, 0 to 1; 0 of none.
pub fn share_up_to(values: &[f64], bound: f64) -> f64 {
    let count = values.iter().filter(|value| **value <= bound).count();
    count as f64 / values.len().max(1) as f64
}

#[cfg(test)]
mod tests;
