//! The picture of `ensue top`: all servers above, the links and commands of the chosen one below.
//!
//! It draws what [`super::model`] says on a frame of any size, and what does not fit is left out. It keeps nothing.

use super::model::{Board, Condition, Figures, Group, Link, Server};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, TableState};
use std::time::Duration;

const HELP: &str = " arrows choose a datacenter   q ends ";
/// Rows of a table that are no servers: its border and its headings.
const FRAME_ROWS: u16 = 3;
/// Below this width the links and the commands stand one above the other.
const SIDE_BY_SIDE_COLUMNS: u16 = 116;
/// What the links need, side by side with the commands.
const LINKS_COLUMNS: u16 = 66;

/// Draws everything; `now` is the time since the beginning.
pub(super) fn draw(frame: &mut Frame<'_>, board: &Board, now: Duration) {
    let servers = u16::try_from(board.servers().len()).unwrap_or(u16::MAX).saturating_add(FRAME_ROWS);
    let areas = Layout::vertical([
        Constraint::Length(servers.min(frame.area().height / 2).max(FRAME_ROWS + 1)),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ]);
    let [above, notice, below, last] = areas.areas(frame.area());
    draw_servers(frame, board, above, now);
    if let Some(server) = board.servers().get(board.chosen()) {
        frame.render_widget(notice_of(server, now), notice);
        if let Some(figures) = server.figures() {
            draw_chosen(frame, &server.name, figures, below);
        }
    }
    frame.render_widget(Line::from(HELP).dim(), last);
}

fn draw_servers(frame: &mut Frame<'_>, board: &Board, area: Rect, now: Duration) {
    let headings = [
        "SERVER",
        "DATACENTER",
        "STATE",
        "OPS/S",
        "KEYS",
        "ALLOCATED",
        "RESIDENT",
        "CLIENTS",
        "WAITING",
        "CONFLICTS",
    ];
    let rows = board.servers().iter().map(|server| Row::new(cells(server, now)));
    let name_columns = board.servers().iter().map(|server| server.name.chars().count()).max().unwrap_or(0);
    let widths = [
        Constraint::Length(u16::try_from(name_columns.clamp(6, 30)).unwrap_or(30)),
        Constraint::Length(10),
        Constraint::Min(12),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(7),
        Constraint::Length(7),
        Constraint::Length(9),
    ];
    let table = Table::new(rows, widths)
        .header(Row::new(headings).style(Style::new().bold()))
        .block(Block::bordered().title(" ensue top "))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::new().with_selected(board.chosen());
    frame.render_stateful_widget(table, area, &mut state);
}

fn cells(server: &Server, now: Duration) -> Vec<Cell<'static>> {
    let (words, tone) = state_of(server, now);
    let name = Cell::from(server.name.clone());
    let Some(figures) = server.figures() else {
        return vec![name, Cell::from(""), Cell::from(words.fg(tone))];
    };
    let conflicts = match figures.conflicting_values {
        0 => count(figures.conflicts),
        standing => format!("{} ({})", count(figures.conflicts), count(standing)),
    };
    vec![
        name,
        Cell::from(figures.datacenter.clone()),
        Cell::from(words.fg(tone)),
        Cell::from(per_second(figures.operations)),
        Cell::from(count(figures.keys)),
        Cell::from(bytes(figures.allocated_bytes)),
        Cell::from(bytes(figures.resident_bytes)),
        Cell::from(count(figures.clients)),
        Cell::from(count(figures.waiting.all())),
        Cell::from(conflicts),
    ]
}

fn state_of(server: &Server, now: Duration) -> (String, Color) {
    match (&server.condition, server.figures()) {
        (Condition::Silent { since, .. }, _) => {
            (format!("no answer {}", span(now.saturating_sub(*since))), Color::Red)
        }
        (_, None) => ("asked".into(), Color::Yellow),
        (_, Some(figures)) if figures.is_ready => ("ready".into(), Color::Green),
        (_, Some(figures)) if figures.is_serving => ("serving".into(), Color::Yellow),
        (_, Some(_)) => ("not serving".into(), Color::Red),
    }
}

/// What is wrong with the chosen server, or what waits in it.
fn notice_of(server: &Server, now: Duration) -> Line<'static> {
    match (&server.condition, server.figures()) {
        (Condition::Silent { reason, .. }, _) => {
            Line::from(format!(" {}: {}", server.name, printable(reason)).fg(Color::Red))
        }
        (_, Some(figures)) if !figures.reason.is_empty() => {
            Line::from(format!(" {}: {}", server.name, printable(&figures.reason)).fg(Color::Yellow))
        }
        (_, Some(figures)) => {
            let waiting = figures.waiting;
            Line::from(format!(
                " {}: entries waiting {}, reads {}, keys {}, blocked clients {}; conflicts a second {}",
                server.name,
                waiting.entries,
                waiting.reads,
                waiting.keys,
                waiting.clients,
                per_second(figures.conflicts_per_s),
            ))
        }
        (Condition::Asked, None) => Line::from(format!(" {}: asked {} ago", server.name, span(now)).dim()),
        (Condition::Answers, None) => Line::default(),
    }
}

fn draw_chosen(frame: &mut Frame<'_>, name: &str, figures: &Figures, area: Rect) {
    let link_rows = u16::try_from(figures.links.len()).unwrap_or(u16::MAX).saturating_add(FRAME_ROWS);
    let [links, commands] = if area.width >= SIDE_BY_SIDE_COLUMNS {
        Layout::horizontal([Constraint::Length(LINKS_COLUMNS), Constraint::Min(0)]).areas(area)
    } else {
        Layout::vertical([Constraint::Length(link_rows.min(area.height)), Constraint::Min(0)]).areas(area)
    };
    draw_links(frame, name, &figures.links, links);
    draw_groups(frame, name, &figures.groups, commands);
}

fn draw_links(frame: &mut Frame<'_>, name: &str, links: &[Link], area: Rect) {
    let block = Block::bordered().title(format!(" links of {name} "));
    if links.is_empty() {
        let text = Paragraph::new("there is no other datacenter").block(block);
        return frame.render_widget(text, area);
    }
    let rows = links.iter().map(|link| {
        Row::new([
            Cell::from(link.peer.clone()),
            Cell::from(link.state.clone().fg(tone_of(&link.state))),
            Cell::from(link.since.map_or(String::new(), span)),
            Cell::from(lag(link.unreceived_entries, link.unreceived)),
            Cell::from(lag(link.behind_entries, link.behind)),
        ])
    });
    let widths = [
        Constraint::Min(8),
        Constraint::Length(8),
        Constraint::Length(7),
        Constraint::Length(18),
        Constraint::Length(16),
    ];
    let headings = ["TO", "LINK", "SINCE", "NOT RECEIVED THERE", "NOT VISIBLE HERE"];
    let table = Table::new(rows, widths).header(Row::new(headings).style(Style::new().bold())).block(block);
    frame.render_widget(table, area);
}

fn tone_of(state: &str) -> Color {
    match state {
        "up" => Color::Green,
        "partial" | "unknown" => Color::Yellow,
        "dead" | "retired" => Color::DarkGray,
        _ => Color::Red,
    }
}

fn draw_groups(frame: &mut Frame<'_>, name: &str, groups: &[Group], area: Rect) {
    let rows = groups.iter().map(|group| {
        let errors = Span::from(count(group.errors));
        let errors = if group.errors > 0 { errors.fg(Color::Yellow) } else { errors };
        Row::new([
            Cell::from(group.name.clone()),
            Cell::from(per_second(group.calls_per_s)),
            Cell::from(count(group.calls)),
            Cell::from(errors),
            Cell::from(group.mean_us.map_or("-".into(), |us| format!("{us:.1} µs"))),
        ])
    });
    let widths = [
        Constraint::Min(10),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(7),
        Constraint::Length(10),
    ];
    let headings = ["COMMANDS", "OPS/S", "ALL", "ERRORS", "MEAN"];
    let table = Table::new(rows, widths)
        .header(Row::new(headings).style(Style::new().bold()))
        .block(Block::bordered().title(format!(" commands of {name} ")));
    frame.render_widget(table, area);
}

fn lag(entries: i64, age: Duration) -> String {
    match entries {
        0 => "-".into(),
        _ => format!("{}, {}", count(entries), span(age)),
    }
}

fn per_second(rate: Option<f64>) -> String {
    match rate {
        None => "-".into(),
        Some(rate) if rate > 0.0 && rate < 10.0 => format!("{rate:.1}"),
        Some(rate) => count(rate.round() as i64),
    }
}

fn count(number: i64) -> String {
    match number {
        ..100_000 => number.to_string(),
        100_000..10_000_000 => format!("{} k", number / 1_000),
        _ => format!("{} M", number / 1_000_000),
    }
}

fn bytes(bytes: i64) -> String {
    match bytes {
        ..10_240 => format!("{bytes} B"),
        10_240..10_485_760 => format!("{} KiB", bytes >> 10),
        10_485_760..10_737_418_240 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

fn span(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// What a server says is text: no control character of it reaches the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests;
