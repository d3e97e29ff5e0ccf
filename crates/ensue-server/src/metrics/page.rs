//! What a node shows, as the text that monitoring systems read: OpenMetrics, or what came before it.
//!
//! A page is made of one observation each time it is asked for; nothing is kept between two. Figures of the datacenter
//! stand under the datacenter that they are of, and only what this node has itself is on its page, so that pages can be
//! added up.

use super::buckets::{COMMAND_POWERS, DELAY_POWERS, Powers, buckets};
use super::commands::{self, Group};
use super::families::{Kind, LABELLED, Labelled, OF_KEYSPACES, OF_PEERS, OF_ROLES, PLAIN, ROLES, Row, Shown};
use ensue_node::{Observation, ObservedLink};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::Arc;

/// Of which node the page is.
#[derive(Clone, Debug)]
pub(super) struct Title {
    pub(super) datacenter: String,
    pub(super) node: usize,
    /// The other datacenters.
    pub(super) peers: Vec<String>,
    pub(super) keyspaces: usize,
    /// When the process began, in seconds since 1970.
    pub(super) started_s: f64,
}

pub(super) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
pub(super) const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page as OpenMetrics.
pub(super) fn openmetrics(title: &Title, observation: Arc<Observation>) -> String {
    let mut registry = Registry::with_prefix("ensue");
    registry.register_collector(Box::new(Page { title: title.clone(), observation }));
    let mut text = String::new();
    encode(&mut text, &registry).expect("writing to a string cannot fail");
    text
}

/// The same in the older format: a counter's name ends in `_total` everywhere, and units are not told.
pub(super) fn classic(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len());
    let mut help = "";
    for line in openmetrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest;
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, "untyped"));
            let words = help.split_once(' ').map_or("", |(_, words)| words);
            let suffix = if kind == "counter" { "_total" } else { "" };
            text.push_str(&format!("# HELP {name}{suffix} {words}\n# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[derive(Debug)]
struct Page {
    title: Title,
    observation: Arc<Observation>,
}

type Written = Result<(), fmt::Error>;

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Written {
        let encoder = &mut encoder;
        self.node(encoder)?;
        for row in PLAIN {
            if let Some(&value) = self.observation.metrics.get(row.from) {
                let mut family = begin(encoder, row)?;
                write(&mut family, (row.kind, row.shown), value)?;
            }
        }
        LABELLED.iter().try_for_each(|labelled| self.labelled(encoder, labelled))?;
        let keyspaces: Vec<String> = (0..self.title.keyspaces).map(|number| number.to_string()).collect();
        OF_KEYSPACES.iter().try_for_each(|row| self.of_each(encoder, row, ("keyspace", &keyspaces)))?;
        OF_PEERS.iter().try_for_each(|row| self.of_each(encoder, row, ("peer", &self.title.peers)))?;
        let roles = ROLES.map(str::to_owned);
        OF_ROLES.iter().try_for_each(|row| self.of_each(encoder, row, ("role", &roles)))?;
        self.links(encoder)?;
        self.delays(encoder)?;
        self.errors(encoder)?;
        self.commands(encoder)
    }
}

impl Page {
    fn node(&self, encoder: &mut DescriptorEncoder<'_>) -> Written {
        let Title { datacenter, node, started_s, .. } = &self.title;
        let labels = [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("datacenter", datacenter.clone()),
            ("node", node.to_string()),
        ];
        let help = "Always 1; its labels say which node this is";
        let mut family = encoder.encode_descriptor("node_info", help, None, MetricType::Gauge)?;
        family.encode_family(&labels)?.encode_gauge(&1_i64)?;
        let (start, help) = ("start_time", "When the process began, since 1970");
        let mut family = encoder.encode_descriptor(start, help, Some(&Unit::Seconds), MetricType::Gauge)?;
        family.encode_gauge(started_s)?;
        let serving = ("serving", "1 if every partition of this node serves", &self.observation.not_serving);
        let ready = (
            "ready",
            "1 if every partition of this node serves, and replicates to every other datacenter",
            &self.observation.not_ready,
        );
        for (name, help, wrong) in [serving, ready] {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            family.encode_gauge(&i64::from(wrong.is_empty()))?;
        }
        Ok(())
    }

    fn labelled(&self, encoder: &mut DescriptorEncoder<'_>, labelled: &Labelled) -> Written {
        let Labelled { name, label, kind, shown, help, values } = *labelled;
        let row = Row { from: "", name, kind, shown, help };
        let mut family = begin(encoder, &row)?;
        for (value, from) in values {
            let figure = self.observation.metric(from);
            write(&mut family.encode_family(&[(label, *value)])?, (kind, shown), figure)?;
        }
        Ok(())
    }

    /// Those of the figures that there are.
    fn of_each(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        row: &Row,
        (label, names): (&str, &[String]),
    ) -> Written {
        let figure = |name: &String| {
            let from = row.from.replace("{}", name);
            Some((name.clone(), *self.observation.metrics.get(&from)?))
        };
        let figures: Vec<(String, i64)> = names.iter().filter_map(figure).collect();
        if figures.is_empty() {
            return Ok(());
        }
        let mut family = begin(encoder, row)?;
        for (name, figure) in figures {
            let labels = [(label, name)];
            write(&mut family.encode_family(&labels)?, (row.kind, row.shown), figure)?;
        }
        Ok(())
    }

    fn links(&self, encoder: &mut DescriptorEncoder<'_>) -> Written {
        let is_up = |link: &ObservedLink| link.up == link.links;
        let help = "1 if every link of this node's cores to the peer is up";
        let mut family = encoder.encode_descriptor("link_up", help, None, MetricType::Gauge)?;
        for link in &self.observation.links {
            let labels = [("peer", link.datacenter.clone())];
            family.encode_family(&labels)?.encode_gauge(&i64::from(is_up(link)))?;
        }
        let help = "Links of this node's cores to those of the peer";
        let mut family = encoder.encode_descriptor("links", help, None, MetricType::Gauge)?;
        for link in &self.observation.links {
            let down = link.links.saturating_sub(link.up).saturating_sub(link.refused);
            for (state, count) in [("up", link.up), ("refused", link.refused), ("down", down)] {
                let labels = [("peer", link.datacenter.clone()), ("state", state.to_owned())];
                family.encode_family(&labels)?.encode_gauge(&i64::from(count))?;
            }
        }
        Ok(())
    }

    /// How long entries of other datacenters took until they were visible.
    fn delays(&self, encoder: &mut DescriptorEncoder<'_>) -> Written {
        let help = "From a write in the peer until it was visible here, by the clocks of both";
        let (name, unit) = ("visibility_delay", Some(&Unit::Seconds));
        let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Histogram)?;
        for peer in &self.title.peers {
            let sum_ms = self.observation.metric(&format!("visible_{peer}_delay_ms"));
            let of_power = |power| self.figure(&format!("visible_after_{peer}:{power}"));
            let bounds = (DELAY_POWERS, 1e-3);
            let labels = [("peer", peer.clone())];
            write_histogram(&mut family.encode_family(&labels)?, bounds, sum_ms as f64 * 1e-3, of_power)?;
        }
        Ok(())
    }

    fn errors(&self, encoder: &mut DescriptorEncoder<'_>) -> Written {
        let help = "Answers that were errors, by their first word";
        let mut family = encoder.encode_descriptor("error_replies", help, None, MetricType::Counter)?;
        for (name, count) in self.observation.metrics.range("errorstat_".to_owned()..) {
            let Some(word) = name.strip_prefix("errorstat_") else { break };
            let labels = [("error", word.to_owned())];
            write(&mut family.encode_family(&labels)?, (Kind::Counter, Shown::Count), *count)?;
        }
        Ok(())
    }

    /// Commands by the group of the documentation that they are in.
    fn commands(&self, encoder: &mut DescriptorEncoder<'_>) -> Written {
        let groups = commands::by_group(&self.observation.metrics);
        let counts: [(&str, &str, Count); 3] = [
            ("commands", "Commands executed", |group| group.calls),
            ("commands_failed", "Commands executed and answered with an error", |group| group.failed),
            ("commands_rejected", "Commands that were not executed", |group| group.rejected),
        ];
        for (name, help, count) in counts {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (group, figures) in &groups {
                let labels = [("group", *group)];
                let value = count(figures);
                write(&mut family.encode_family(&labels)?, (Kind::Counter, Shown::Count), value)?;
            }
        }
        let help = "Time that commands took, each its share of that of the turn that executed it";
        let (name, unit) = ("command_duration", Some(&Unit::Seconds));
        let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Histogram)?;
        for (group, figures) in &groups {
            let labels = [("group", *group)];
            let of_power = |power: usize| figures.by_power.get(&power).copied().unwrap_or(0);
            let bounds = (COMMAND_POWERS, 1e-6);
            let sum_s = figures.ns as f64 * 1e-9;
            write_histogram(&mut family.encode_family(&labels)?, bounds, sum_s, of_power)?;
        }
        Ok(())
    }

    fn figure(&self, name: &str) -> u64 {
        u64::try_from(self.observation.metric(name)).unwrap_or(0)
    }
}

/// One of the figures of a group.
type Count = fn(&Group) -> i64;

fn write_histogram(
    encoder: &mut MetricEncoder<'_>,
    (powers, unit_s): (Powers, f64),
    sum_s: f64,
    of_power: impl Fn(usize) -> u64,
) -> Written {
    let buckets = buckets(powers, unit_s, of_power);
    let count = buckets.iter().map(|(_, count)| count).sum();
    encoder.encode_histogram::<NoLabelSet>(sum_s, count, &buckets, None)
}

fn begin<'e>(encoder: &'e mut DescriptorEncoder<'_>, row: &'e Row) -> Result<MetricEncoder<'e>, fmt::Error> {
    let unit = match row.shown {
        Shown::Count => None,
        Shown::Bytes => Some(&Unit::Bytes),
        Shown::Ms | Shown::Us => Some(&Unit::Seconds),
    };
    let kind = match row.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
    };
    encoder.encode_descriptor(row.name, row.help, unit, kind)
}

fn write(encoder: &mut MetricEncoder<'_>, (kind, shown): (Kind, Shown), figure: i64) -> Written {
    let seconds = match shown {
        Shown::Count | Shown::Bytes => None,
        Shown::Ms => Some(figure as f64 / 1e3),
        Shown::Us => Some(figure as f64 / 1e6),
    };
    match (kind, seconds) {
        (Kind::Counter, None) => encoder.encode_counter::<NoLabelSet, _, u64>(&(figure.max(0) as u64), None),
        (Kind::Counter, Some(seconds)) => {
            encoder.encode_counter::<NoLabelSet, _, u64>(&seconds.max(0.0), None)
        }
        (Kind::Gauge, None) => encoder.encode_gauge(&figure),
        (Kind::Gauge, Some(seconds)) => encoder.encode_gauge(&seconds),
    }
}

#[cfg(test)]
mod tests;
