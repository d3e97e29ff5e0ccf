//! Local links of the documents lead somewhere: in the Markdown files of the root and of `docs/`.

use super::Report;
use super::tree::Tree;

pub fn check(tree: &Tree, report: &mut Report) {
    for (path, text) in
        tree.files_ending(".md").filter(|(path, _)| path.starts_with("docs/") || !path.contains('/'))
    {
        let mut fenced = false;
        for (index, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            }
            if fenced {
                continue;
            }
            for target in targets(line) {
                if !leads_somewhere(tree, path, &target) {
                    report.find(
                        path,
                        index + 1,
                        format!("the link to `{target}` leads nowhere: correct or delete it"),
                    );
                }
            }
        }
    }
}

fn leads_somewhere(tree: &Tree, path: &str, target: &str) -> bool {
    let file = target.split('#').next().unwrap_or_default();
    if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
        return true;
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                if parts.pop().is_none() {
                    return false;
                }
            }
            part => parts.push(part),
        }
    }
    !file.starts_with('/') && tree.has(&parts.join("/"))
}

/// What stands in the round brackets of `[text](target)`, and after `[name]:` at the start of a line.
fn targets(line: &str) -> Vec<String> {
    let line = without_code_spans(line);
    let mut targets = Vec::new();
    if line.starts_with('[') {
        targets.extend(line.split_once("]: ").map(|(_, target)| target));
    }
    targets
        .extend(line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target));
    let first_word =
        |target: &str| target.split_whitespace().next().unwrap_or_default().trim_matches(['<', '>']).into();
    targets.into_iter().map(first_word).collect()
}

fn without_code_spans(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}
